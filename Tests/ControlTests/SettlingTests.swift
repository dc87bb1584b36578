// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import JSON
import Testing
import Values

/// When keys are quiet and done.
struct SettlingTests {
  private func settling(confirms: Bool = true) -> Settling {
    var settling = Settling(["a/b"], pattern: "a/b")
    #expect(settling.questions(describing: true).map(\.key) == ["a/b", "a/b", "a/b"])
    var row = PropertyRow(
      key: "a/b",
      deviceName: "A",
      kind: .boolean,
      policy: .init(delay: .zero)
    )
    row.confirmWithin = confirms ? .seconds(1) : nil
    #expect(settling.receive(.described([row], id: nil)).isEmpty)
    return settling
  }

  private func state(_ phase: Phase?, waits: PendingReason? = nil) -> [ControlReply] {
    let pending = waits.map {
      PendingRow(key: "a/b", value: true, collapsed: 0, waits: $0, dueMilliseconds: nil)
    }
    let target = TargetRow(key: "a/b", target: true, actual: nil, phase: phase, ageMilliseconds: 1)
    return [.pending(pending.map { [$0] } ?? [], id: nil), .targets([target], id: nil)]
  }

  private func event(_ phase: Phase) -> ControlReply {
    let event = EventObject(id: "1", key: "a/b", phase: phase, value: true, at: "")
    return .watched(event, watch: nil)
  }

  @Test(
    arguments: [
      (nil, true, true, true), (.accepted, true, false, false), (.sending, true, false, false),
      (.sent, true, false, true), (.sent, false, true, true), (.confirmed, true, true, true),
      (.unchanged, true, true, true), (.superseded, true, true, false),
      (.cancelled, true, true, false), (.failed, true, true, false),
      (.expired, true, true, false), (.rejected, true, true, true),
    ] as [(Phase?, Bool, Bool, Bool)]
  )
  func `the last phase decides`(phase: Phase?, confirms: Bool, isDone: Bool, isGood: Bool) {
    var settling = settling(confirms: confirms)
    for reply in state(phase) { #expect(settling.receive(reply).isEmpty) }
    #expect(settling.isDone == isDone)
    #expect(settling.statuses["a/b"]?.isGood == isGood)
  }

  @Test func `a pending value is not done, whatever the phase`() {
    var settling = settling()
    for reply in state(.confirmed, waits: .offline) { _ = settling.receive(reply) }
    #expect(!settling.isDone)
    #expect(settling.reason == "a/b waits for an offline broker or device")
  }

  @Test func `an event in the middle of the questions leads to new ones`() {
    var settling = settling()
    let replies = state(.sending)
    #expect(settling.receive(replies[0]).isEmpty)
    #expect(settling.receive(event(.confirmed)).isEmpty)
    #expect(settling.receive(replies[1]).count == 2)
    for reply in state(.confirmed) { #expect(settling.receive(reply).isEmpty) }
    #expect(settling.isDone)
  }

  @Test func `an event after the answers leads to new questions at once`() {
    var settling = settling()
    for reply in state(.sending) { _ = settling.receive(reply) }
    #expect(settling.receive(event(.failed)).count == 2)
    #expect(settling.receive(event(.failed)).isEmpty)
    #expect(!settling.isDone)
    for reply in state(.failed) { _ = settling.receive(reply) }
    #expect(settling.isDone)
  }

  @Test func `a change that was rejected does not hide the command before it`() {
    var settling = settling()
    _ = settling.receive(event(.sent))
    for reply in state(.rejected) { _ = settling.receive(reply) }
    #expect(!settling.isDone)
    #expect(settling.reason == "a/b is sent")
  }
}

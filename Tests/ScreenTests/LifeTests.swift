// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import JSON
import LastOut
import Testing
import Values
@testable import Screen

/// The progress of changes on the screen.
struct LifeTests {
  private let key = "desk-lamp/brightness"

  @Test func `a command progresses from the key press to the confirmation`() {
    var stage = Stage()
    stage.select(key)
    stage.type(">>>")
    #expect(stage.line("brightness") == "brightness 103 100 ████████████████ 0.3s 3")
    for number in 1...3 { stage.accept("me-\(number)", key, .integer(Int64(100 + number))) }
    stage.pass(150)
    #expect(stage.line("brightness") == "brightness 103 100 ████████ 0.2s 3")
    stage.pass(150)
    stage.hear(.sending, "me-3", key, 103, collapsed: 2)
    #expect(stage.line("brightness") == "brightness 103 100 → sending 3 → 1")
    stage.hear(.sent, "me-3", key, 103, collapsed: 2)
    #expect(stage.line("brightness") == "brightness 103 100 ✓ sent 3 → 1")
    stage.hear(.confirmed, "me-3", key, 103, collapsed: 2)
    #expect(stage.line("brightness") == "brightness 103 ✓✓ confirmed 3 → 1")
    #expect(stage.texts()[22].contains("3 changes → 1 command"))
  }

  private static let endings: [(Phase, String?, String, JSONValue)] = [
    (.failed, "not confirmed within 5s", "✗ failed: not confirm…", 100),
    (.expired, nil, "✗ expired", 100),
    (.cancelled, "urgent", "– cancelled: urgent", 100),
    (.unchanged, nil, "= unchanged", 101),
    (.superseded, "changed at the device", "~ changed at the devi…", 101),
    (.confirmed, nil, "✓✓ confirmed", 101),
  ]

  @Test(arguments: endings)
  func `each final phase has its mark and a failed target is reset`(
    phase: Phase,
    reason: String?,
    shown: String,
    target: JSONValue
  ) {
    var stage = Stage()
    stage.select(key)
    stage.type(">")
    stage.accept("me-1", key, 101)
    stage.hear(phase, "me-1", key, 101, reason: reason)
    #expect(stage.line("brightness").contains(shown))
    #expect(stage.row(key)?.target == target)
  }

  @Test func `sent is the final phase without a state topic`() {
    var facts = Stage.lamp
    facts.confirmWithin = nil
    var stage = Stage(facts: [facts])
    stage.type(">")
    stage.accept("me-1", key, 101)
    stage.hear(.sent, "me-1", key, 101)
    #expect(stage.row(key)?.progress == .ended(.sent, reason: nil, at: stage.now))
  }

  @Test func `an answer to an older change does not move the value back`() {
    var stage = Stage()
    stage.select(key)
    stage.type(">>")
    stage.accept("me-1", key, 101)
    #expect(stage.row(key)?.target == 102)
    stage.screen.receive(
      .targets(
        [TargetRow(key: key, target: 101, actual: 90, phase: .accepted, ageMilliseconds: 0)],
        id: "get"
      ),
      at: stage.now
    )
    #expect(stage.row(key)?.target == 102)
    #expect(stage.row(key)?.actual == 90)
    stage.accept("me-2", key, 102)
    #expect(stage.row(key)?.target == 102)
  }

  @Test func `the gateway's corrected value is shown`() {
    var stage = Stage()
    stage.select(key)
    stage.type(">")
    stage.accept("me-1", key, 104)
    #expect(stage.row(key)?.target == 104)
  }

  @Test func `a step computed by the gateway shows its value when it is known`() {
    var stage = Stage()
    stage.select("strip/speed")
    stage.type("+")
    #expect(stage.line("speed").contains("· asking the device"))
    stage.accept("me-1", "strip/speed", 5)
    #expect(stage.row("strip/speed")?.target == 5)
  }

  @Test func `a rejection shows its reason and restores the gateway's value`() {
    var stage = Stage()
    stage.select(key)
    stage.type(">")
    var event = stage.event("me-1", key, .rejected, 101)
    event.reason = "the gateway is shutting down"
    stage.screen.receive(.event(event, id: "me-1"), at: stage.now)
    #expect(stage.line("brightness").contains("✗ the gateway is shut…"))
    #expect(stage.screen.notice?.text == "\(key): the gateway is shutting down")
    stage.pass(50)
    #expect(stage.requests().contains(#"{"get":"desk-lamp/*","id":"get"}"#))
    stage.screen.receive(
      .targets(
        [TargetRow(key: key, target: 100, actual: 100, phase: .confirmed, ageMilliseconds: 9)],
        id: "get"
      ),
      at: stage.now
    )
    #expect(stage.row(key)?.target == 100)
    #expect(stage.line("brightness").contains("✗ the gateway is shut…"))
  }

  @Test func `changes of other clients settle on the screen`() {
    var stage = Stage()
    stage.accept("01J", key, 7)
    stage.accept("01K", key, 8)
    #expect(stage.row(key)?.target == 8)
    #expect(stage.line("brightness").hasSuffix("0.3s 2"))
    stage.hear(.superseded, "01J", key, 7, reason: "newer value")
    #expect(stage.line("brightness").hasSuffix("0.3s 2"))
  }

  @Test func `the bar respects max_wait`() {
    var stage = Stage()
    stage.select(key)
    for _ in 0..<19 {
      stage.type(">")
      stage.pass(100)
    }
    stage.type(">")
    guard case .settling(let countdown) = stage.row(key)?.progress else {
      Issue.record("not settling")
      return
    }
    #expect(countdown.remaining(at: stage.now) == .milliseconds(100))
  }

  @Test func `a leading value is sent immediately and the next one settles`() {
    var stage = Stage()
    stage.select("strip/speed")
    stage.type("3\n")
    #expect(stage.row("strip/speed")?.progress == .sending)
    stage.accept("me-1", "strip/speed", 3)
    stage.hear(.sending, "me-1", "strip/speed", 3)
    stage.type("+")
    #expect(stage.row("strip/speed")?.progress.isMoving == true)
    stage.hear(.sent, "me-1", "strip/speed", 3)
    #expect(stage.row("strip/speed")?.progress.isMoving == true)
  }

  @Test func `a leading value waits for the interval since the last command`() {
    var stage = Stage()
    stage.select("strip/speed")
    stage.type("3\n")
    stage.accept("me-1", "strip/speed", 3)
    stage.hear(.sending, "me-1", "strip/speed", 3)
    stage.pass(10)
    stage.type("+")
    stage.accept("me-2", "strip/speed", 4)
    stage.pass(190)
    stage.hear(.sending, "me-2", "strip/speed", 4)
    stage.pass(12)
    stage.type("+")
    guard case .settling(let countdown) = stage.row("strip/speed")?.progress else {
      Issue.record("not settling")
      return
    }
    #expect(countdown.remaining(at: stage.now) == .milliseconds(188))
  }

  private static let waits: [(PendingReason, Int?, String)] = [
    (.quiet, 200, "██████████▊ 0.2s"), (.lane, 1200, "· lane 1.2s"),
    (.inFlight, nil, "· in flight"), (.offline, 58_000, "· device offline 58s"),
  ]

  @Test(arguments: waits)
  func `the screen shows why a value waits`(waits: PendingReason, due: Int?, shown: String) {
    var stage = Stage()
    stage.screen.receive(
      .pending(
        [PendingRow(key: key, value: 9, collapsed: 4, waits: waits, dueMilliseconds: due)],
        id: "pending"
      ),
      at: stage.now
    )
    #expect(stage.line("brightness").contains(shown))
    #expect(stage.line("brightness").hasSuffix(" 5"))
    #expect(stage.row(key)?.target == 9)
  }

  @Test func `an overdue value is read from the gateway`() {
    var stage = Stage(rows: 10)
    stage.select(key)
    stage.type(">")
    stage.accept("me-1", key, 101)
    _ = stage.requests()
    stage.pass(1000)
    #expect(
      stage.requests() == [
        #"{"status":true,"id":"status"}"#,
        #"{"pending":"desk-lamp/*","id":"pending"}"#, #"{"get":"desk-lamp/*","id":"get"}"#,
        #"{"get":"boiler/*","id":"get"}"#,
      ]
    )
  }
}

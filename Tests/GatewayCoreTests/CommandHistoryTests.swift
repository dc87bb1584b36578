// Settle
// SPDX-License-Identifier: Apache-2.0

import GatewayCore
import JSON
import LastOut
import Testing
import Values
@testable import Commands

@Suite struct CommandHistoryTests {
  private let lamp = KeyIndex(0)
  private let boiler = KeyIndex(1)

  private func event(
    _ phase: Phase,
    _ number: UInt64,
    of key: KeyIndex,
    value: Double = 1,
    reason: String? = nil,
    origin: ChangeOrigin? = nil
  ) -> CommandEvent {
    CommandEvent(
      key: key,
      phase: phase,
      value: .number(value),
      collapsed: 0,
      number: number,
      acceptedAt: Moment(nanoseconds: number),
      at: Moment(nanoseconds: number + 1),
      attempt: 1,
      reason: reason,
      origin: origin,
      isFinal: false
    )
  }

  private func numbers(_ history: CommandHistory, _ key: KeyIndex) -> [UInt64] {
    history.entries(of: key).map(\.number)
  }

  @Test func `later phases update the entry of their command`() {
    var history = CommandHistory()
    for phase in [Phase.sending, .sent] { history.record(event(phase, 1, of: lamp)) }
    history.record(event(.sent, 2, of: lamp))
    history.record(event(.failed, 1, of: lamp, reason: "not confirmed"))

    let entries = history.entries(of: lamp)
    #expect(entries.map(\.phase) == [.failed, .sent])
    #expect(entries.first?.reason == "not confirmed")
    #expect(entries.first?.value == 1)
  }

  @Test(arguments: [
    ([Phase.sending, .sent], Phase.sent, "then superseded: newer value"),
    ([.sending], .superseded, "newer value"),
  ])
  func `a command that was sent stays so when a newer value follows`(
    phases: [Phase],
    phase: Phase,
    reason: String
  ) {
    var history = CommandHistory()
    for phase in phases { history.record(event(phase, 1, of: lamp)) }
    history.record(event(.superseded, 1, of: lamp, reason: "newer value"))

    #expect(history.entries(of: lamp).map(\.phase) == [phase])
    #expect(history.entries(of: lamp).first?.reason == reason)
  }

  @Test(arguments: [Phase.accepted, .superseded])
  func `a change that never was a command leaves no entry`(phase: Phase) {
    var history = CommandHistory()
    history.record(event(phase, 1, of: lamp))
    #expect(history.entries(of: lamp).isEmpty)
    #expect(history.count == 0)
  }

  @Test func `a key keeps its last ten commands`() {
    var history = CommandHistory()
    for number in 1...25 { history.record(event(.sent, UInt64(number), of: lamp)) }
    #expect(numbers(history, lamp) == Array(16...25))
    #expect(history.count == CommandHistory.depth)
  }

  @Test func `busy keys leave quiet ones their commands`() {
    var history = CommandHistory(limit: 12)
    history.record(event(.sent, 1, of: boiler))
    for number in 2...40 { history.record(event(.sent, UInt64(number), of: lamp)) }
    #expect(numbers(history, boiler) == [1])
    #expect(numbers(history, lamp) == Array(31...40))
  }

  @Test func `beyond the limit the oldest command of all makes room`() {
    var history = CommandHistory(limit: 4)
    for number in 1...9 {
      history.record(event(.sent, UInt64(number), of: KeyIndex(Int32(number % 3))))
    }
    #expect(history.count == 4)
    #expect(numbers(history, KeyIndex(0)) == [6, 9])
    #expect(numbers(history, KeyIndex(1)) == [7])
    #expect(numbers(history, KeyIndex(2)) == [8])
  }

  @Test func `the store agrees with a slow model, whatever is recorded`() {
    var history = CommandHistory(limit: 30)
    var model: [(key: Int32, number: UInt64)] = []
    var state: UInt64 = 7
    for number in 1...3000 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let key = Int32(state >> 33 & 7)
      history.record(event(.sent, UInt64(number), of: KeyIndex(key)))
      if model.count(where: { $0.key == key }) == CommandHistory.depth,
        let oldest = model.firstIndex(where: { $0.key == key })
      {
        model.remove(at: oldest)
      } else if model.count == 30 {
        model.removeFirst()
      }
      model.append((key, UInt64(number)))
      for key in Int32(0)..<8 {
        let expected = model.filter { $0.key == key }.map(\.number)
        #expect(numbers(history, KeyIndex(key)) == expected, "after \(number)")
      }
    }
  }

  @Test func `equal rejections in a row are one entry, the last of them`() {
    var history = CommandHistory()
    history.record(event(.sent, 1, of: lamp))
    for (number, reason) in [(2, "too bright"), (3, "too bright"), (4, "no number")] {
      history.recordRejection(
        of: lamp,
        value: 300,
        reason: reason,
        origin: ChangeOrigin(source: "cli"),
        at: Moment(nanoseconds: UInt64(number))
      )
    }
    #expect(history.entries(of: lamp).map(\.at.nanoseconds) == [2, 3, 4])
    #expect(history.entries(of: lamp).map(\.phase) == [.sent, .rejected, .rejected])
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Values
import Commands
import Devices
import Durability
import LastOut
import Testing

@testable import GatewayCore

/// Which keys the journal keeps from being sent: `blind/position` (0) has a row on the disk,
/// `blind/button` (1) ends it.
@Suite struct WithheldKeysTests {
  private struct Fixture: ~Copyable {
    let registry = CoreBench().core.registry
    var rows = JournalRows(plan: JournalPlan(contents: JournalContents()), keys: 4)
    var commands: CommandStateMachine
    var keys = WithheldKeys(keys: 4)
    var now = Moment(nanoseconds: 1_000_000_000)
    let identifiers = CommandIdentifiers(wallMilliseconds: 0, now: .zero, session: 0)

    init() {
      commands = CommandStateMachine(registry: registry)
      accept(1)
      write()
    }

    mutating func accept(_ number: UInt64, of key: Int32 = 0, replacing replaced: UInt64? = nil) {
      _ = rows.accept(
        CommandEvent.sample(KeyIndex(key), .accepted, number: number, at: now),
        .number(Double(number)),
        replacing: replaced,
        until: now.advanced(by: .seconds(60)),
        in: registry
      )
    }

    mutating func send(_ number: UInt64) {
      let event = CommandEvent.sample(KeyIndex(0), .sending, number: number, at: now)
      let isKnown = rows.sending(event, in: registry)
      #expect(isKnown)
    }

    mutating func end(_ number: UInt64, _ phase: Phase) {
      let event = CommandEvent.sample(KeyIndex(0), phase, number: number, at: now)
      let isReleasing = rows.ended(event, promptly: true, in: registry, at: now)
      #expect(isReleasing != nil)
      keys.commandFinished(KeyIndex(0), rows)
    }

    mutating func write() {
      now = now.advanced(by: .seconds(1))
      #expect(rows.nextWork(identifiers, at: now) != nil)
      rows.plan.completed(.done, at: now)
      keys.diskChanged()
    }

    mutating func add(
      _ key: Int32,
      _ sequence: UInt64?,
      ending others: [Int32],
      urgent: UInt64?,
      agrees: Bool = false
    ) {
      let command = WithheldKeys.Command(
        key: KeyIndex(key),
        sequence: sequence,
        others: others.map { other in
          var rival = Rival(key: KeyIndex(other))
          rival.agrees = agrees
          return rival
        },
        ended: rows.plan.sequence,
        urgentNumber: urgent
      )
      keys.add(command, &rows, in: &commands, at: now)
    }

    mutating func forget(_ key: Int32) { keys.forget(KeyIndex(key), in: &commands) }

    func barred() -> [KeyIndex] { keys.barred(rows, at: now) }

    mutating func release() -> [KeyIndex] { keys.release(rows, in: &commands, at: now) }
  }

  @Test func `a key without an older row is not withheld`() {
    var fixture = Fixture()
    fixture.add(0, 1, ending: [], urgent: nil)
    #expect(fixture.keys.behind == [])
  }

  @Test func `a key is withheld until its older row is replaced`() {
    var fixture = Fixture()
    fixture.accept(2, replacing: 1)
    fixture.add(0, 2, ending: [], urgent: nil)
    #expect(fixture.keys.behind == [KeyIndex(0)])
    #expect(fixture.release() == [])
    #expect(fixture.keys.contains(KeyIndex(0)))
    fixture.write()
    #expect(fixture.release() == [])
    #expect(fixture.keys.behind == [])
  }

  @Test func `a key whose newest command was not needed is withheld until its older row is gone`() {
    var fixture = Fixture()
    fixture.accept(2, replacing: 1)
    fixture.add(0, 2, ending: [], urgent: nil)
    fixture.end(2, .unchanged)
    #expect(fixture.release() == [])
    #expect(fixture.keys.behind == [KeyIndex(0)])
    fixture.write()
    #expect(fixture.release() == [])
    #expect(fixture.keys.behind == [])
  }

  @Test func `a command in flight may be repeated when the newer one is cancelled`() {
    var fixture = Fixture()
    fixture.send(1)
    fixture.accept(2)
    fixture.add(0, 2, ending: [], urgent: nil)
    #expect(fixture.keys.behind == [KeyIndex(0)])
    fixture.end(2, .cancelled)
    #expect(fixture.release() == [])
    #expect(fixture.keys.behind == [])
  }

  @Test func `a command waits for the row of another key that it ends`() {
    var fixture = Fixture()
    fixture.add(1, nil, ending: [0], urgent: nil)
    #expect(fixture.barred() == [KeyIndex(1)])
    #expect(fixture.keys.hasBarriers(KeyIndex(1)))
  }

  @Test func `a stored value waits for a row, and is not among those to be rejected`() {
    var fixture = Fixture()
    fixture.accept(2, of: 2)
    fixture.add(2, 2, ending: [0], urgent: nil)
    #expect(fixture.barred() == [KeyIndex(2)])
    fixture.write()
    #expect(fixture.barred() == [])
    #expect(fixture.keys.behind == [KeyIndex(2)])
  }

  @Test(arguments: [false, true])
  func `a command waits for the row that a value replaces which agrees with it`(isReplaced: Bool) {
    var fixture = Fixture()
    if isReplaced { fixture.accept(2, replacing: 1) }
    fixture.add(1, nil, ending: [0], urgent: nil, agrees: true)
    #expect(fixture.keys.behind == (isReplaced ? [KeyIndex(1)] : []))
    guard isReplaced else { return }
    fixture.write()
    #expect(fixture.release() == [])
    #expect(fixture.keys.behind == [])
  }

  @Test func `an urgent command stops waiting after its patience, and the row is named`() {
    var fixture = Fixture()
    fixture.add(1, nil, ending: [0], urgent: 7)
    #expect(fixture.keys.isUrgent(7, of: KeyIndex(1)))
    #expect(fixture.barred() == [])
    let end = fixture.now.advanced(by: WithheldKeys.patience)
    #expect(fixture.keys.patienceEnds == end)
    fixture.now = end
    #expect(fixture.release() == [KeyIndex(0)])
    #expect(fixture.keys.patienceEnds == nil)
  }

  @Test func `nothing is due any more when a key is forgotten whose urgent command waits`() {
    var fixture = Fixture()
    fixture.add(1, nil, ending: [0], urgent: 7)
    fixture.forget(1)
    fixture.now = fixture.now.advanced(by: WithheldKeys.patience)
    #expect(fixture.release() == [])
    #expect(fixture.keys.patienceEnds == nil)
  }

  @Test func `nothing is withheld for a row that has expired`() {
    var fixture = Fixture()
    fixture.add(1, nil, ending: [0], urgent: nil)
    fixture.now = fixture.now.advanced(by: .seconds(60))
    #expect(fixture.release() == [])
    #expect(fixture.keys.behind == [])
  }
}

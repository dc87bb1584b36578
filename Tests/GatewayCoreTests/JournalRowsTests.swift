// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
import JSON
import LastOut
import Testing
import Values

@testable import GatewayCore

@Suite struct JournalRowsTests {
  private static let now = Moment(nanoseconds: 1_000_000_000)
  private static let key = KeyIndex(0)

  private static func event(_ number: UInt64, _ phase: Phase = .accepted) -> CommandEvent {
    CommandEvent.sample(key, phase, number: number, at: now)
  }

  /// Rows of the bench's keys, with a first value of key 0 on the disk.
  private static func rowsWithDiskRow() -> (rows: JournalRows, registry: Registry, first: UInt64) {
    let registry = CoreBench().core.registry
    var rows = JournalRows(plan: JournalPlan(contents: JournalContents()), keys: 4)
    let first = accept(1, &rows, registry)
    let identifiers = CommandIdentifiers(wallMilliseconds: 0, now: now, session: 0)
    let work = rows.nextWork(identifiers, at: now)
    #expect(work != nil)
    rows.plan.completed(.done, at: now)
    return (rows, registry, first)
  }

  private static func accept(
    _ number: UInt64,
    replacing replaced: UInt64? = nil,
    _ rows: inout JournalRows,
    _ registry: Registry
  ) -> UInt64 {
    rows.accept(
      event(number),
      .number(Double(number)),
      replacing: replaced,
      until: now.advanced(by: .seconds(60)),
      in: registry
    )
  }

  @Test func `the disk holds something older until the newer value is written`() {
    var (rows, registry, first) = Self.rowsWithDiskRow()
    let second = Self.accept(2, replacing: 1, &rows, registry)
    #expect(second > first)
    #expect(rows.holdsOlder(Self.key, than: second, at: Self.now))
    #expect(!rows.holdsOlder(Self.key, than: first, at: Self.now))
    #expect(rows.waiting(Self.key) == second)
  }

  @Test func `a row that has expired is not sent by a crash`() throws {
    let (rows, _, _) = Self.rowsWithDiskRow()
    let expiry = try #require(rows.expiry(of: Self.key))
    #expect(!rows.holdsOlder(Self.key, than: .max, at: expiry))
  }

  @Test func `a command that was handed to the broker waits no longer`() {
    var (rows, registry, _) = Self.rowsWithDiskRow()
    #expect(rows.sending(Self.event(1, .sending), in: registry) == true)
    #expect(rows.waiting(Self.key) == nil)
    #expect(rows.lastSent(of: Self.key) == 1)
    #expect(rows.sending(Self.event(9, .sending), in: registry) == false)
  }

  @Test func `replies wait for a commit while the disk has a row, and only then`() {
    var (rows, registry, _) = Self.rowsWithDiskRow()
    #expect(rows.ended(Self.event(1), promptly: true, in: registry, at: Self.now) == false)
    #expect(rows.ended(Self.event(1), promptly: true, in: registry, at: Self.now) == nil)
    var fresh = JournalRows(plan: JournalPlan(contents: JournalContents()), keys: 4)
    _ = Self.accept(5, &fresh, registry)
    #expect(fresh.ended(Self.event(5), promptly: true, in: registry, at: Self.now) == true)
  }

  /// It is sent before its commit ends, its session ends before the device has it, and the newer
  /// one is rejected later.
  @Test func `a value that was stored after a newer one replaced it is restored`() {
    let registry = CoreBench().core.registry
    var rows = JournalRows(
      plan: JournalPlan(contents: JournalContents()),
      keys: 4,
      keepsReplaced: true
    )
    let identifiers = CommandIdentifiers(wallMilliseconds: 0, now: Self.now, session: 0)
    let first = Self.accept(1, &rows, registry)
    let work = rows.nextWork(identifiers, at: Self.now)
    #expect(work != nil)
    let isSent = rows.sending(Self.event(1, .sending), in: registry)
    #expect(isSent)
    _ = Self.accept(2, &rows, registry)
    _ = rows.ended(Self.event(1, .superseded), promptly: true, in: registry, at: Self.now)
    rows.plan.completed(.done, at: Self.now)
    let restored = rows.popRestorable(Self.key, at: Self.now)
    #expect(restored?.sequence == first)
  }

  @Test func `a key that was never accepted has no row`() {
    let rows = JournalRows(plan: JournalPlan(contents: JournalContents()), keys: 4)
    #expect(!rows.holdsOlder(Self.key, than: .max, at: Self.now))
    #expect(rows.expiry(of: Self.key) == nil)
    #expect(!rows.keeps(Self.key))
  }
}

extension CommandEvent {
  /// An event of a command that watchers receive.
  static func sample(
    _ key: KeyIndex,
    _ phase: Phase,
    number: UInt64,
    at now: Moment
  ) -> CommandEvent {
    var machine = CommandStateMachine(registry: CoreBench().core.registry)
    machine.log.isWatched = true
    _ = machine.log.reject(key, reason: "sample", at: now, origin: nil)
    var event = machine.log.events[0]
    event.phase = phase
    event.number = number
    event.reason = nil
    event.isFinal = false
    return event
  }
}

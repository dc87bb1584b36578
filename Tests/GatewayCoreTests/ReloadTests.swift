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

/// A reload in steps of bounded size, and what arrives between two of them.
@Suite struct ReloadTests {
  /// Devices `d0`, `d1` … with a `level` up to `maximum`, which reports its state.
  private static func devices(_ count: Int, to maximum: Double) -> [Device] {
    (0..<count).map { number in
      var level = CoreBench.number("level", to: maximum)
      level.state = StateSource(topic: "d\(number)/state", value: .whole)
      level.confirm = Confirmation(within: .seconds(3))
      return Device(id: "d\(number)", name: "d\(number)", properties: [level])
    }
  }

  /// A core with `count` devices that begins to continue with a `level` up to 50, `slice` keys a
  /// step.
  private static func bench(
    _ count: Int,
    slice: Int,
    isJournalled: Bool = false,
    before: (inout CoreBench) throws -> Void
  ) rethrows -> CoreBench {
    var bench = CoreBench(isJournalled: isJournalled, devices: devices(count, to: 100))
    bench.core.settings.keysPerReloadStep = slice
    try before(&bench)
    _ = bench.step()
    bench.core.beginReload(
      Registry(devices(count, to: 50), continuing: bench.core.registry),
      lanes: [:]
    )
    return bench
  }

  /// Steps until the new definitions count.
  private static func replace(_ bench: inout CoreBench) {
    while !bench.step().contains("replaced") {}
  }

  /// One step, whose work the journal's thread does at once.
  private static func stepAndCommit(_ bench: inout CoreBench) {
    if bench.step().contains("write") { bench.commitEnds() }
  }

  @Test func `a step looks at no more keys than it may, and all are looked at`() throws {
    let count = 350
    var bench = try Self.bench(count, slice: 100) { bench in
      for number in 0..<count { try bench.set("d\(number)/level", .number(90)) }
    }
    var cancelled: [Int] = []
    var steps = 0
    while bench.core.isReloading {
      #expect(bench.core.nextDeadline(after: bench.now) == .zero)
      cancelled.append(bench.step().count { $0.hasPrefix("emit cancelled") })
      steps += 1
    }
    // Four steps prepare keys, four devices, one replaces, four check keys, one finds nothing left.
    #expect(steps == 14)
    #expect(cancelled == [0, 0, 0, 0, 0, 0, 0, 0, 0, 100, 100, 100, 50, 0])
  }

  @Test func `changes meet the old definitions until they are replaced, then the new ones`() throws
  {
    var bench = Self.bench(5, slice: 1) { _ in }
    _ = bench.step()
    try bench.set("d4/level", .number(90))
    Self.replace(&bench)
    let registry = bench.core.registry
    #expect(throws: ValidationError.self) {
      try registry.value(from: .integer(80), of: KeyIndex(4))
    }
    #expect(throws: Never.self) { try bench.set("d4/level", .number(40)) }
    while bench.core.isReloading { _ = bench.step() }
    #expect(bench.core.status(KeyIndex(4)).target == .number(40))
  }

  @Test func `a value that does not fit any more is not published before its key is reached`()
    throws
  {
    var bench = try Self.bench(5, slice: 1) { bench in
      try bench.set("d4/level", .number(90))
      try bench.set("d3/level", .number(30))
    }
    while !bench.step().contains("replaced") {}
    bench.pass(300)
    let effects = bench.step()
    #expect(effects.filter { $0.hasPrefix("publish") } == ["publish level/set 30"])
    #expect(effects.contains("emit cancelled d4/level"))
  }

  @Test func `a report in the middle confirms, and one off the grid stays known`() throws {
    var bench = try Self.bench(5, slice: 1) { bench in
      bench.core.reported(KeyIndex(0), .number(20.25), source: 0, at: bench.now)
      try bench.set("d4/level", .number(30), skipsQuiet: true)
    }
    Self.replace(&bench)
    bench.core.reported(KeyIndex(4), .number(30.25), source: 0, at: bench.now)
    while bench.core.isReloading { _ = bench.step() }
    #expect(bench.core.status(KeyIndex(0)).actual == .number(20.25))
    #expect(bench.core.status(KeyIndex(0)).target == .number(20.25))
    #expect(bench.core.status(KeyIndex(4)).actual == .number(30.25))
  }

  @Test func `a shutdown in the middle sends what fits and ends`() throws {
    var bench = try Self.bench(5, slice: 1) { bench in
      try bench.set("d4/level", .number(90))
      try bench.set("d3/level", .number(30))
    }
    Self.replace(&bench)
    bench.core.beginShutdown(at: bench.now)
    let effects = bench.step()
    #expect(effects.filter { $0.hasPrefix("publish") } == ["publish level/set 30"])
    #expect(effects.contains("emit cancelled d4/level"))
    bench.pass(11_000)
    var last: [String] = []
    for _ in 0..<5 where !bench.core.isEnded { last = bench.step() }
    #expect(last.last == "end")
  }

  @Test func `a key that only the journal's file knew is written once a reload brings it`() throws {
    var entry = JournalEntry(
      key: "d1/level",
      sequence: 1,
      value: [],
      origin: .stored(
        JournalStamps(
          boot: CoreBench.boot,
          bootMilliseconds: 1000,
          wallMilliseconds: CoreBench.wallMilliseconds
        )
      ),
      ttl: .seconds(60)
    )
    entry.content = .unwritten(DurableValue(value: .integer(1), id: .string("a")))
    var bench = CoreBench(entries: [entry], devices: Self.devices(1, to: 100))
    for _ in 0..<2 { Self.stepAndCommit(&bench) }
    bench.core.beginReload(
      Registry(Self.devices(2, to: 100), continuing: bench.core.registry),
      lanes: [:]
    )
    while bench.core.isReloading { Self.stepAndCommit(&bench) }
    for _ in 0..<3 {
      Self.stepAndCommit(&bench)
      bench.pass(2000)
    }
    try bench.set("d1/level", .number(5))
    bench.pass(1000)
    #expect(bench.step().contains("write"))
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
@testable import GatewayCore
import JSON
import LastOut
import Testing
import Values

/// What is accepted while the disk is full and still has an older value of the key.
@Suite struct UnwritableStoreTests {
  @Test(arguments: 1...3)
  func `steps that waited for a report are rejected once each, and never stored`(
    count: Int
  ) throws {
    var level = CoreBench.number("swing")
    level.state = StateSource(
      topic: "swing",
      value: .whole,
      get: StateRequest(topic: "swing/get", payload: [])
    )
    let fan = Device(id: "fan", name: "fan", properties: [level])
    var bench = CoreBench(devices: [fan])
    let swing = try bench.core.registry.index(of: "fan/swing")
    try bench.set("fan/swing", .number(7))
    #expect(bench.step().contains("write"))
    bench.commitEnds()
    _ = bench.step()
    _ = bench.core.cancel(swing, at: bench.now, source: "test")
    for _ in 0..<count { try bench.core.change(.step(1), of: swing, at: bench.now) }
    _ = bench.step()
    bench.pass(200)
    #expect(bench.step().contains("write"))
    bench.core.storeFinished(.failed(.diskFull), at: bench.now)
    #expect(!bench.step().contains { $0.hasPrefix("emit") })
    bench.core.reported(swing, 20, source: 0, at: bench.now)
    let told = bench.step().filter { $0.hasPrefix("emit") }
    #expect(told == Array(repeating: "emit rejected fan/swing", count: count))

    bench.pass(60_000)
    var written = 0
    while bench.step().contains("write") {
      bench.commitEnds()
      written += 1
    }
    #expect(written == 1)
    #expect(bench.core.durability?.plan.isIdle == true)
    #expect(bench.published().isEmpty)
  }

  // MARK: - The disk fails in the step in which changes are accepted

  /// A bench that has a durable 7 of `key`, and whose next commit is being written.
  private static func benchInCommit(of key: String, isShared: Bool = false) throws -> CoreBench {
    var bench = CoreBench(isShared: isShared)
    try bench.set(key, .number(7))
    #expect(bench.step().contains("write"))
    bench.commitEnds()
    #expect(bench.step().contains("emit accepted \(key)"))
    try bench.set("blind/position", .number(40))
    bench.pass(200)
    #expect(bench.step().contains("write"))
    return bench
  }

  private static func fail(_ bench: inout CoreBench) -> [String] {
    bench.core.storeFinished(.failed(.diskFull), at: bench.now)
    return bench.step().filter { !$0.hasPrefix("log") && !$0.hasSuffix("blind/position") }
  }

  @Test(arguments: [false, true])
  func `a stop is sent that follows a value which cannot be kept`(isShared: Bool) throws {
    var bench = try Self.benchInCommit(of: "fan/speed", isShared: isShared)
    try bench.set("fan/speed", .number(20))
    try bench.set("fan/speed", .number(0))
    let effects = Self.fail(&bench)
    #expect(effects.filter { $0.hasPrefix("publish") } == ["publish speed/set 0"])
    #expect(!effects.contains("emit rejected fan/speed"))
    bench.pass(60_000)
    #expect(bench.published().filter { $0.hasPrefix("publish speed") }.isEmpty)
  }

  @Test(arguments: [false, true])
  func `a stop is sent that a value follows which cannot be kept`(isShared: Bool) throws {
    var bench = try Self.benchInCommit(of: "fan/speed", isShared: isShared)
    try bench.set("fan/speed", .number(0))
    try bench.set("fan/speed", .number(20))
    let effects = Self.fail(&bench)
    #expect(effects.filter { $0.hasPrefix("publish") } == ["publish speed/set 0"])
    #expect(effects.filter { $0 == "emit rejected fan/speed" }.count == 1)
    bench.pass(60_000)
    #expect(bench.published().filter { $0.hasPrefix("publish speed") }.isEmpty)
  }

  @Test(arguments: [false, true])
  func `a stop is sent that a value follows at once which cannot be kept`(isShared: Bool) throws {
    var bench = try Self.benchInCommit(of: "fan/speed", isShared: isShared)
    try bench.set("fan/speed", .number(0))
    try bench.set("fan/speed", .number(20), skipsQuiet: true)
    let effects = Self.fail(&bench)
    #expect(effects.filter { $0.hasPrefix("publish") } == ["publish speed/set 0"])
    #expect(effects.filter { $0 == "emit rejected fan/speed" }.count == 1)
    #expect(!effects.contains("emit superseded fan/speed"))
    #expect(effects.contains("emit sending fan/speed"))
    bench.acknowledge()
    #expect(bench.step().contains("emit sent fan/speed"))
    bench.pass(60_000)
    #expect(bench.published().filter { $0.hasPrefix("publish speed") }.isEmpty)
  }

  @Test(arguments: [false, true])
  func `a stop does not come back for a value behind the durable one that replaced it`(
    isShared: Bool
  ) throws {
    var bench = try Self.benchInCommit(of: "fan/speed", isShared: isShared)
    try bench.set("fan/speed", .number(0))
    try bench.set("fan/speed", .number(20))
    bench.core.connectionChanged(isUp: false, at: bench.now)
    let speed = try bench.core.registry.index(of: "fan/speed")
    _ = bench.core.flush(speed, at: bench.now, source: "test")
    bench.commitEnds()
    try #require(bench.step().contains("write"))
    bench.commitEnds()
    #expect(bench.step().contains("emit superseded fan/speed"))
    try bench.set("fan/speed", .number(30), skipsQuiet: true)
    bench.pass(200)
    try #require(bench.step().contains("write"))
    _ = Self.fail(&bench)
    bench.connect()
    bench.pass(60_000)
    #expect(!bench.published().contains("publish speed/set 0"))
  }

  @Test(arguments: [false, true])
  func `what is cancelled brings nothing back`(isShared: Bool) throws {
    var bench = try Self.benchInCommit(of: "fan/swing", isShared: isShared)
    let swing = try bench.core.registry.index(of: "fan/swing")
    try bench.set("fan/swing", .number(20))
    _ = bench.core.cancel(swing, at: bench.now, source: "test")
    _ = Self.fail(&bench)
    bench.pass(60_000)
    #expect(bench.published().filter { $0.hasPrefix("publish swing") }.isEmpty)
  }

  @Test(arguments: [false, true])
  func `two values and what cancels them bring nothing back`(isShared: Bool) throws {
    var bench = try Self.benchInCommit(of: "fan/swing", isShared: isShared)
    let swing = try bench.core.registry.index(of: "fan/swing")
    try bench.set("fan/swing", .number(20))
    try bench.set("fan/swing", .number(30))
    _ = bench.core.cancel(swing, at: bench.now, source: "test")
    #expect(!Self.fail(&bench).contains("emit rejected fan/swing"))
    bench.pass(60_000)
    #expect(bench.published().filter { $0.hasPrefix("publish swing") }.isEmpty)
  }

  @Test(arguments: [1, 2, 3])
  func `the durable value comes back once, however many newer ones are rejected`(
    count: Int
  ) throws {
    var bench = try Self.benchInCommit(of: "fan/swing", isShared: true)
    for number in 1...count { try bench.set("fan/swing", .number(Double(10 * number))) }
    let effects = Self.fail(&bench)
    #expect(effects.filter { $0 == "emit rejected fan/swing" }.count == count)
    #expect(!effects.contains("emit superseded fan/swing"))
    bench.pass(1000)
    let later = bench.step()
    #expect(later.filter { $0.hasPrefix("publish swing") } == ["publish swing/set 7"])
    // The store can be written again: what it is given is what still waits.
    #expect(later.contains("write"))
    bench.commitEnds()
    _ = bench.step()
    #expect(bench.core.durability?.fault == nil)
  }

  @Test(arguments: [false, true])
  func `what a stop of another property ends brings nothing back`(isShared: Bool) throws {
    var bench = try Self.benchInCommit(of: "fan/swing", isShared: isShared)
    try bench.set("fan/swing", .number(20))
    try bench.set("fan/speed", .number(0))
    let effects = Self.fail(&bench)
    #expect(effects.filter { $0.hasPrefix("publish") } == ["publish speed/set 0"])
    bench.pass(60_000)
    #expect(bench.published().filter { $0.hasPrefix("publish swing") }.isEmpty)
  }

  @Test func `a value that is restored is not rejected by the failure that restored it`() throws {
    var bench = CoreBench(isShared: true)
    try bench.set("fan/swing", .number(7))
    #expect(bench.step().contains("write"))
    bench.commitEnds()
    _ = bench.step()
    try bench.set("fan/swing", .number(8))
    bench.pass(200)
    #expect(bench.step().contains("write"))
    try bench.set("fan/swing", .number(9))
    #expect(Self.fail(&bench).filter { $0 == "emit rejected fan/swing" }.count == 2)
    bench.pass(5000)
    #expect(bench.published().filter { $0.hasPrefix("publish swing") } == ["publish swing/set 7"])
  }
}

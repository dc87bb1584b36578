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

/// No stop that was accepted before a value that it would end is sent after that value, whenever
/// the process ends.
@Suite struct OrderAcrossCrashTests {
  /// A cover whose `command` STOP ends `position`.
  private static var cover: [Device] {
    let position = CoreBench.number("position")
    var command = position
    command.id = "command"
    command.kind = .choice(["OPEN", "STOP"])
    command.command.topic = "command/set"
    command.policy = Policy(delay: .zero)
    command.urgent = [.text("STOP")]
    command.ends = ["position"]
    return [Device(id: "cover", name: "cover", properties: [command, position])]
  }

  /// A bench whose disk has a STOP.
  private static func benchWithStop(isAcknowledged: Bool) throws -> CoreBench {
    var bench = CoreBench(devices: cover)
    try bench.set("cover/command", .text("STOP"))
    let effects = bench.step()
    #expect(effects.contains("publish command/set STOP"))
    try #require(effects.contains("write"))
    if isAcknowledged { bench.acknowledge() }
    return bench
  }

  /// What steps publish until the position has left, with every commit done; what a crash sends is
  /// checked after each step.
  private static func lives(_ bench: inout CoreBench) -> [String] {
    var published: [String] = []
    for _ in 0..<8 {
      let effects = bench.step()
      published += effects.filter { $0.hasPrefix("publish") }
      if published.contains("publish position/set 40") {
        var next = bench.crashed(devices: cover)
        for _ in 0..<3 { #expect(!next.published().contains("publish command/set STOP")) }
      }
      if effects.contains("write") { bench.commitEnds() }
    }
    return published
  }

  @Test func `a value waits until the row of an older stop is gone, which does not wait`() throws {
    var bench = try Self.benchWithStop(isAcknowledged: true)
    bench.commitEnds()
    _ = bench.step()
    #expect(bench.rows["cover/command"] != nil)
    bench.pass(50)
    try bench.set("cover/position", .number(40), skipsQuiet: true)
    let effects = bench.step()
    try #require(effects.contains("write"))
    #expect(!effects.contains("publish position/set 40"))
    bench.commitEnds()
    #expect(bench.published() == ["publish position/set 40"])
    #expect(bench.rows["cover/command"] == nil)
    #expect(Self.lives(&bench).isEmpty)
  }

  @Test(arguments: [false, true])
  func `a value waits for the commit that is writing the stop`(isAcknowledged: Bool) throws {
    var bench = try Self.benchWithStop(isAcknowledged: isAcknowledged)
    try bench.set("cover/position", .number(40), skipsQuiet: true)
    #expect(bench.published().isEmpty)
    bench.commitEnds()
    bench.acknowledge()
    #expect(Self.lives(&bench) == ["publish position/set 40"])
  }

  @Test func `a value waits for a stop of the same instant, which the disk does not have yet`()
    throws
  {
    var bench = CoreBench(devices: Self.cover)
    try bench.set("cover/command", .text("STOP"))
    try bench.set("cover/position", .number(40), skipsQuiet: true)
    let effects = bench.step()
    #expect(effects.filter { $0.hasPrefix("publish") } == ["publish command/set STOP"])
    bench.commitEnds()
    bench.acknowledge()
    #expect(Self.lives(&bench) == ["publish position/set 40"])
  }

  @Test func `a value does not wait for what it is not related to`() throws {
    var bench = CoreBench(devices: Self.cover)
    try bench.set("cover/command", .text("OPEN"))
    try #require(bench.step().contains("write"))
    bench.commitEnds()
    _ = bench.step()
    try bench.set("cover/position", .number(40), skipsQuiet: true)
    #expect(bench.published() == ["publish position/set 40"])
  }

  @Test func `a value is refused that the disk would let an older stop follow`() throws {
    var bench = try Self.benchWithStop(isAcknowledged: true)
    bench.commitEnds()
    _ = bench.step()
    bench.pass(1200)
    try #require(bench.step().contains("write"))
    bench.core.storeFinished(.failed(.diskFull), at: bench.now)
    _ = bench.step()
    #expect(throws: ValidationError.self) { try bench.set("cover/position", .number(40)) }
  }

  @Test(arguments: [false, true])
  func `a value is rejected when a failed attempt has left a stop that was sent before it`(
    isAcknowledgedFirst: Bool
  ) throws {
    let lamp = Device(id: "lamp", name: "lamp", properties: [CoreBench.number("level")])
    var bench = CoreBench(devices: Self.cover + [lamp])
    try bench.set("lamp/level", .number(7))
    try #require(bench.step().contains("write"))
    bench.core.storeFinished(.failed(.diskFull), at: bench.now)
    _ = bench.step()
    try bench.set("cover/command", .text("STOP"))
    #expect(bench.published() == ["publish command/set STOP"])
    try bench.set("cover/position", .number(40), skipsQuiet: true)
    #expect(bench.published().isEmpty)
    bench.pass(1200)
    try #require(bench.step().contains("write"))
    if isAcknowledgedFirst { bench.acknowledge() }
    #expect(bench.published().isEmpty)
    bench.core.storeFinished(.failed(.diskFull), at: bench.now)
    #expect(bench.step().contains("emit rejected cover/position"))
    if !isAcknowledgedFirst { bench.acknowledge() }
    bench.pass(60_000)
    #expect(!bench.published().contains("publish position/set 40"))
  }

  /// A bench in which a commit writes a brightness, and the lamp is turned on.
  private static func turnOn(after brightness: Double) throws -> CoreBench {
    var power = CoreBench.number("power")
    power.kind = .boolean
    var level = CoreBench.number("level")
    level.implies = [Implication(property: "power", value: .boolean(true))]
    var bench = CoreBench(devices: [Device(id: "lamp", name: "lamp", properties: [power, level])])
    try bench.set("lamp/level", .number(brightness))
    try #require(bench.step().contains("write"))
    try bench.set("lamp/power", .boolean(true), skipsQuiet: true)
    return bench
  }

  @Test func `an on waits for the row of a brightness of 0`() throws {
    var bench = try Self.turnOn(after: 0)
    #expect(bench.published().isEmpty)
    bench.commitEnds()
    let effects = bench.step()
    try #require(effects.contains("write"))
    #expect(!effects.contains("publish power/set true"))
    bench.commitEnds()
    #expect(bench.published() == ["publish power/set true"])
  }

  @Test func `an on does not wait for the row of another brightness`() throws {
    var bench = try Self.turnOn(after: 50)
    #expect(bench.published() == ["publish power/set true"])
  }

  // MARK: - What an earlier process left

  private static func stored(_ value: String, boot: UInt64 = 0) -> [JournalEntry] {
    let stamps = JournalStamps(
      boot: BootIdentifier(high: 1, low: boot),
      bootMilliseconds: 1000,
      wallMilliseconds: CoreBench.wallMilliseconds
    )
    var entry = JournalEntry(
      key: "cover/command",
      sequence: 5,
      value: [],
      origin: .stored(stamps),
      ttl: .seconds(60)
    )
    entry.content = .unwritten(DurableValue(value: .string(value), id: .string("id5")))
    return [entry]
  }

  @Test func `a stop that waits for the clock ends with a newer value`() throws {
    var bench = CoreBench(entries: Self.stored("STOP"), devices: Self.cover)
    bench.isClockSynchronised = false
    _ = bench.step()
    try bench.set("cover/position", .number(40), skipsQuiet: true)
    var effects = bench.step()
    try #require(effects.contains("write"))
    #expect(!effects.contains("publish position/set 40"))
    bench.commitEnds()
    effects = bench.step()
    #expect(effects.contains("publish position/set 40"))
    bench.isClockSynchronised = true
    bench.pass(1000)
    #expect(!(bench.step() + bench.step()).contains("resumed cover/command"))
  }

  @Test func `what is no stop and waits for the clock stays`() throws {
    var bench = CoreBench(entries: Self.stored("OPEN"), devices: Self.cover)
    bench.isClockSynchronised = false
    _ = bench.step()
    try bench.set("cover/position", .number(40), skipsQuiet: true)
    #expect(bench.published() == ["publish position/set 40"])
    bench.isClockSynchronised = true
    bench.pass(1000)
    #expect((bench.step() + bench.step()).contains("publish command/set OPEN"))
  }

  @Test func `a stop of a file that opens late does not follow a newer value`() throws {
    var bench = CoreBench(fault: .readOnly, devices: Self.cover)
    _ = bench.step()
    try bench.set("cover/position", .number(40), skipsQuiet: true)
    #expect(bench.published() == ["publish position/set 40"])
    bench.acknowledge()
    bench.fileOpens(with: Self.stored("STOP", boot: 1))
    for _ in 0..<6 {
      let effects = bench.step()
      #expect(!effects.contains("resumed cover/command"))
      #expect(!effects.contains("publish command/set STOP"))
      if effects.contains("write") { bench.commitEnds() }
    }
  }

  /// Nothing but the step that sends the newer value would send the one that waited for the stop.
  @Test func `what waits for a stop leaves in the step that sends what replaced the stop`() throws {
    var bench = CoreBench()
    try bench.set("light/hue", .number(31))
    bench.pass(200)
    #expect(bench.step().contains("write"))  // Which takes long.
    try bench.set("fan/speed", .number(50), skipsQuiet: true)
    #expect(bench.published() == ["publish speed/set 50"])
    try bench.set("fan/speed", .number(0))
    try bench.set("fan/swing", .number(30), skipsQuiet: true)
    try bench.set("fan/speed", .number(20), skipsQuiet: true)
    #expect(bench.published().isEmpty)
    bench.acknowledgeAll()
    #expect(bench.published() == ["publish speed/set 20", "publish swing/set 30"])
  }

  @Test func `what it has already is told in that step too`() throws {
    var bench = CoreBench()
    let swing = try bench.core.registry.index(of: "fan/swing")
    bench.core.reported(swing, 30, source: 0, at: bench.now)
    try bench.set("light/hue", .number(31))
    bench.pass(200)
    #expect(bench.step().contains("write"))
    try bench.set("fan/speed", .number(50), skipsQuiet: true)
    #expect(bench.published() == ["publish speed/set 50"])
    try bench.set("fan/swing", .number(40), skipsQuiet: true)
    try bench.set("fan/speed", .number(0))
    try bench.set("fan/swing", .number(30), skipsQuiet: true)
    try bench.set("fan/speed", .number(20), skipsQuiet: true)
    _ = bench.step()
    bench.acknowledgeAll()
    let effects = bench.step()
    #expect(effects.filter { $0.hasPrefix("publish") } == ["publish speed/set 20"])
    #expect(try bench.phase(of: "fan/swing") == .unchanged)
    #expect(bench.step().filter { $0.hasPrefix("emit") }.isEmpty)
  }
}

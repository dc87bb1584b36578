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

/// What waits for the messages that the broker retains: whether a device is online, and what it
/// has.
@Suite struct RetainedReportTests {
  /// A lamp with two availability sources, a `level` that it reports, and a `siren` that stops with
  /// 0; and a plug without availability.
  private static var devices: [Device] {
    var level = CoreBench.number("level")
    level.state = StateSource(topic: "level", value: .whole)
    var siren = CoreBench.number("siren")
    siren.urgent = [.number(0)]
    var bell = CoreBench.number("bell")
    bell.kind = .action(["ring"])
    bell.policy = Policy(delay: .zero)
    var lamp = Device(id: "lamp", name: "lamp", properties: [level, siren, bell])
    lamp.availability = ["lamp", "bridge"].map {
      AvailabilitySource(topic: $0, value: .whole, online: "online", offline: "offline")
    }
    var power = CoreBench.number("power")
    power.state = StateSource(topic: "power", value: .whole)
    return [lamp, Device(id: "plug", name: "plug", properties: [power, CoreBench.number("dim")])]
  }

  /// A process that found these values, whose broker has sent nothing yet of what it retains.
  private static func bench(_ values: KeyValuePairs<String, Double>) throws -> CoreBench {
    var bench = CoreBench(devices: devices)
    bench.core.connectionChanged(isUp: false, at: bench.now)
    for (key, value) in values { try bench.set(key, .number(value), skipsQuiet: true) }
    try #require(bench.step().contains("write"))
    bench.commitEnds()
    var next = bench.crashed(devices: devices, hasRetained: true)
    let resumed = (next.step() + next.step()).filter { $0.hasPrefix("resumed") }
    #expect(resumed.count == values.count)
    return next
  }

  private static func says(_ isOnline: Bool, _ source: Int, _ bench: inout CoreBench) throws {
    let device = try bench.core.registry.deviceIndex(of: "lamp")
    _ = bench.core.availability(
      ofDevice: device,
      source: source,
      isOnline: isOnline,
      at: bench.now
    )
  }

  private static func waits(_ key: String, _ bench: borrowing CoreBench) throws -> PendingReason? {
    let key = try bench.core.registry.index(of: key)
    return PendingStatus(of: key, in: bench.core.commands)?.waits
  }

  // MARK: - After a restart

  @Test func `a stored value waits for the device that turns out to be offline`() throws {
    var bench = try Self.bench(["lamp/level": 40])
    #expect(bench.published().isEmpty)
    #expect(try Self.waits("lamp/level", bench) == .unknown)
    try Self.says(false, 0, &bench)
    bench.core.retainedMessagesCompleted(at: bench.now)
    bench.pass(5000)
    #expect(bench.published().isEmpty)
    #expect(try Self.waits("lamp/level", bench) == .offline)
    try Self.says(true, 0, &bench)
    #expect(bench.published() == ["publish level/set 40"])
  }

  @Test func `a stored value is sent once every source and the state were reported`() throws {
    var bench = try Self.bench(["lamp/level": 40])
    try Self.says(true, 0, &bench)
    bench.core.reported(
      try bench.core.registry.index(of: "lamp/level"),
      7,
      source: 0,
      at: bench.now
    )
    #expect(bench.published().isEmpty)
    try Self.says(true, 1, &bench)
    #expect(bench.published() == ["publish level/set 40"])
  }

  @Test func `a stored value that the device has is unchanged`() throws {
    var bench = try Self.bench(["plug/power": 40])
    #expect(bench.published().isEmpty)
    let power = try bench.core.registry.index(of: "plug/power")
    bench.core.reported(power, 40, source: 0, at: bench.now)
    let effects = bench.step()
    #expect(effects.contains("emit unchanged plug/power"))
    #expect(!effects.contains { $0.hasPrefix("publish power") })
  }

  @Test func `a stored value waits for nothing that no report can tell`() throws {
    var bench = try Self.bench(["plug/dim": 40])
    #expect(try bench.phase(of: "plug/dim") == .sending)
    bench.acknowledge()
    #expect(bench.step().contains("emit sent plug/dim"))
  }

  @Test(arguments: [false, true])
  func `without reports a stored value is sent once they are complete, or after two seconds`(
    areCompleted: Bool
  ) throws {
    var bench = try Self.bench(["lamp/siren": 0])
    #expect(bench.published().isEmpty)
    if areCompleted {
      bench.core.retainedMessagesCompleted(at: bench.now)
    } else {
      bench.pass(1999)
      #expect(bench.published().isEmpty)
      let deadline = bench.core.nextDeadline(after: bench.now)
      #expect(deadline == bench.now.advanced(by: .milliseconds(1)))
      bench.pass(1)
    }
    #expect(bench.published() == ["publish siren/set 0"])
  }

  @Test func `a value expires while its device is not known`() throws {
    var device = Self.devices
    device[0].properties[0].ttl = .seconds(1)
    var bench = CoreBench(isJournalled: false, devices: device, hasRetained: true)
    try bench.set("lamp/level", .number(40), skipsQuiet: true)
    _ = bench.step()
    bench.pass(1000)
    #expect(bench.step().contains("emit expired lamp/level"))
  }

  // MARK: - A running gateway

  @Test func `what was known before a loss of the connection does not count`() throws {
    var bench = CoreBench(devices: Self.devices)
    try Self.says(true, 0, &bench)
    try Self.says(true, 1, &bench)
    bench.core.connectionChanged(isUp: false, at: bench.now)
    try bench.set("lamp/level", .number(40), skipsQuiet: true)
    bench.connect(hasRetained: true)
    #expect(bench.published().isEmpty)
    try Self.says(false, 0, &bench)
    bench.core.retainedMessagesCompleted(at: bench.now)
    #expect(bench.published().isEmpty)
  }

  @Test func `an urgent value of this process does not wait`() throws {
    var bench = CoreBench(devices: Self.devices, hasRetained: true)
    try bench.set("lamp/siren", .number(0))
    #expect(bench.published() == ["publish siren/set 0"])
  }

  @Test func `a momentary command waits, and fails only if its device is offline`() throws {
    var bench = CoreBench(devices: Self.devices, hasRetained: true)
    try bench.set("lamp/bell", .text("ring"))
    #expect(bench.published().isEmpty)
    #expect(try Self.waits("lamp/bell", bench) == .unknown)
    try Self.says(false, 0, &bench)
    #expect(bench.step().contains("emit failed lamp/bell"))
  }

  @Test func `momentary commands that wait expire one by one`() throws {
    var device = Self.devices
    device[0].properties[2].ttl = .seconds(1)
    var bench = CoreBench(devices: device, hasRetained: true)
    try bench.set("lamp/bell", .text("ring"))
    bench.pass(900)
    try bench.set("lamp/bell", .text("ring"))
    _ = bench.step()
    bench.pass(100)
    #expect(bench.step().filter { $0 == "emit expired lamp/bell" }.count == 1)
    bench.core.retainedMessagesCompleted(at: bench.now)
    #expect(bench.published() == ["publish bell/set ring"])
  }

  @Test func `the end of the connection ends the wait`() throws {
    var bench = CoreBench(devices: Self.devices, hasRetained: true)
    try bench.set("lamp/level", .number(40), skipsQuiet: true)
    bench.core.connectionChanged(isUp: false, at: bench.now)
    bench.pass(3000)
    #expect(bench.published().isEmpty)
    #expect(try Self.waits("lamp/level", bench) == .offline)
  }

  @Test func `a shutdown waits for the reports, and then sends`() throws {
    var bench = CoreBench(isJournalled: false, devices: Self.devices, hasRetained: true)
    try bench.set("lamp/level", .number(40))
    bench.core.beginShutdown(at: bench.now)
    #expect(!bench.step().contains("end"))
    bench.pass(2000)
    #expect(bench.published() == ["publish level/set 40"])
    bench.acknowledge()
    #expect(bench.step().contains("emit sent lamp/level"))
  }

  @Test func `a state from before the connection was lost makes no value unchanged`() throws {
    var bench = CoreBench(isJournalled: false, devices: Self.devices)
    let power = try bench.core.registry.index(of: "plug/power")
    bench.core.reported(power, 25, source: 0, at: bench.now)
    bench.core.connectionChanged(isUp: false, at: bench.now)
    bench.core.connectionChanged(isUp: true, at: bench.now)
    try bench.set("plug/power", .number(25), skipsQuiet: true)
    #expect(bench.published().count == 1)
    // Once the broker has sent what it retains, it is the newest there is.
    bench.core.reported(power, 30, source: 0, at: bench.now)
    bench.core.retainedMessagesCompleted(at: bench.now)
    bench.core.reported(power, 25, source: 0, at: bench.now)
    try bench.set("plug/power", .number(25), skipsQuiet: true)
    #expect(bench.published().isEmpty)
  }

  @Test(arguments: [false, true])
  func `a state from before the device was offline makes no value unchanged`(
    isReportedAgain: Bool
  ) throws {
    var bench = CoreBench(isJournalled: false, devices: Self.devices)
    let level = try bench.core.registry.index(of: "lamp/level")
    bench.core.reported(level, 25, source: 0, at: bench.now)
    try Self.says(false, 0, &bench)
    try bench.set("lamp/level", .number(25), skipsQuiet: true)
    #expect(bench.published().isEmpty)
    if isReportedAgain { bench.core.reported(level, 25, source: 0, at: bench.now) }
    try Self.says(true, 0, &bench)
    #expect(bench.published() == (isReportedAgain ? [] : ["publish level/set 25"]))
    #expect(bench.core.status(level).actual == .number(25))
  }

  @Test func `what the broker retains of an offline device is from before`() throws {
    var bench = CoreBench(isJournalled: false, devices: Self.devices, hasRetained: true)
    let level = try bench.core.registry.index(of: "lamp/level")
    try Self.says(false, 0, &bench)
    try Self.says(true, 1, &bench)
    bench.core.reported(level, 25, source: 0, at: bench.now)
    bench.core.retainedMessagesCompleted(at: bench.now)
    try bench.set("lamp/level", .number(25), skipsQuiet: true)
    try Self.says(true, 0, &bench)
    #expect(bench.published() == ["publish level/set 25"])
  }

  // MARK: - A member of a cluster

  @Test(arguments: [true, false])
  func `a device waits for what the session of its partition brings, and no other does`(
    isOffline: Bool
  ) throws {
    var bench = CoreBench(isJournalled: false, devices: Self.devices)
    let lamp = try bench.core.registry.deviceIndex(of: "lamp")
    bench.core.sessionChanged(ofDevice: lamp, isUp: true, at: bench.now)
    bench.core.retainedMessagesFollow(of: [lamp], at: bench.now)
    try bench.set("lamp/level", .number(40), skipsQuiet: true)
    try bench.set("plug/dim", .number(30), skipsQuiet: true)
    #expect(bench.published() == ["publish dim/set 30"])
    #expect(try Self.waits("lamp/level", bench) == .unknown)
    if isOffline { try Self.says(false, 0, &bench) }
    bench.core.retainedMessagesCompleted(of: [lamp], at: bench.now)
    #expect(bench.published() == (isOffline ? [] : ["publish level/set 40"]))
  }

  @Test func `a device that another gateway drives is online when that gateway says so`() throws {
    var bench = CoreBench(isJournalled: false, devices: Self.devices)
    let lamp = try bench.core.registry.deviceIndex(of: "lamp")
    try Self.says(false, 0, &bench)
    bench.core.setElsewhere(true, device: lamp)
    bench.core.sessionChanged(ofDevice: lamp, isUp: false, at: bench.now)
    let before = bench.core.isOnline(device: lamp)
    bench.core.sessionChanged(ofDevice: lamp, isUp: true, at: bench.now)
    let after = bench.core.isOnline(device: lamp)
    #expect(!before && after)
  }

  @Test func `without a marker each session is waited for two seconds`() throws {
    var devices = Self.devices
    devices[1].availability = devices[0].availability
    var bench = CoreBench(isJournalled: false, devices: devices)
    let (lamp, plug) = (
      try bench.core.registry.deviceIndex(of: "lamp"),
      try bench.core.registry.deviceIndex(of: "plug")
    )
    bench.core.retainedMessagesFollow(of: [lamp], at: bench.now)
    try bench.set("lamp/level", .number(40), skipsQuiet: true)
    bench.pass(1500)
    bench.core.retainedMessagesFollow(of: [plug], at: bench.now)
    try bench.set("plug/dim", .number(30), skipsQuiet: true)
    bench.pass(499)
    #expect(bench.published().isEmpty)
    bench.pass(1)
    #expect(bench.published() == ["publish level/set 40"])
    bench.pass(1499)
    #expect(bench.published().isEmpty)
    bench.pass(1)
    #expect(bench.published() == ["publish dim/set 30"])
  }
}

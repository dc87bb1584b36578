// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

/// Values for a device that sleeps wait until it reports itself.
@Suite struct SleeperTests {
  private static let asleep = "the device is asleep"

  private static func bench(
    _ properties: Property...,
    window: LaneLimits.Window? = nil
  ) -> Bench {
    var device = Device.of("d", lane: "mesh", properties, hasAvailability: false)
    device.awake = AwakeSource(topic: "d/awake")
    let other = Device.of("e", lane: "mesh", [.seen("light")], hasAvailability: false)
    var settings = CommandSettings()
    if let window { settings.lanes = ["mesh": LaneLimits(rate: nil, window: window)] }
    return Bench([device, other], settings: settings)
  }

  @Test func `the newest value waits and is sent with the report`() throws {
    var bench = Self.bench(.level())
    try bench.set("level", .number(10))
    bench.pass(300)
    try bench.set("level", .number(20))
    bench.pass(300)
    #expect(bench.send().isEmpty)
    #expect(
      try PendingStatus(of: bench.key("level"), in: bench.machine)?.waits == .asleep
    )

    bench.machine.deviceAwoke(0, at: bench.now)

    #expect(bench.send() == ["20"])
  }

  @Test func `a value that is not quiet yet is sent too`() throws {
    var bench = Self.bench(.level())
    try bench.set("level", .number(10))
    bench.machine.deviceAwoke(0, at: bench.now)
    #expect(bench.send() == ["10"])
  }

  @Test func `what comes later waits for the next report`() throws {
    var bench = Self.bench(.level())
    bench.machine.deviceAwoke(0, at: bench.now)
    try bench.set("level", .number(10), now: true)
    #expect(bench.send().isEmpty)
    bench.machine.deviceAwoke(0, at: bench.now)
    #expect(bench.send() == ["10"])
    try bench.set("level", .number(20), now: true)
    #expect(bench.send().isEmpty)
  }

  @Test func `events name what the value waits for`() throws {
    var bench = Self.bench(.level { $0.ttl = .seconds(60) })
    try bench.set("level", .number(10))
    bench.pass(60_000)
    #expect(
      bench.told() == ["level accepted 10: \(Self.asleep)", "level expired 10: \(Self.asleep)"]
    )
  }

  @Test func `a momentary command fails at once`() throws {
    var bench = Self.bench(.word("press", kind: .action(["press"]), delay: 0))
    try bench.set("press", .text("press"))
    bench.pass(0)
    #expect(bench.told().last == "press failed press: \(Self.asleep)")
  }

  @Test func `an urgent value waits like any other`() throws {
    var bench = Self.bench(.level { $0.urgent = [.number(0)] })
    try bench.set("level", .number(0))
    #expect(bench.send().isEmpty)
    bench.machine.deviceAwoke(0, at: bench.now)
    #expect(bench.send() == ["0"])
  }

  @Test func `a value that the device turns out to have is not sent`() throws {
    var bench = Self.bench(.seen())
    try bench.set("level", .number(10), now: true)
    try bench.report("level", 10)
    bench.machine.deviceAwoke(0, at: bench.now)
    #expect(bench.send().isEmpty)
    #expect(bench.told().last == "level unchanged 10")
  }

  @Test func `a retry waits for the next report`() throws {
    var bench = Self.bench(.seen(retries: 1))
    try bench.set("level", .number(10), now: true)
    bench.machine.deviceAwoke(0, at: bench.now)
    #expect(bench.send() == ["10"])
    bench.pass(5000)
    #expect(bench.send().isEmpty)
    bench.machine.deviceAwoke(0, at: bench.now)
    #expect(bench.send() == ["10"])
  }

  @Test func `it takes no room in its lane while it waits, and is no loss`() throws {
    var bench = Self.bench(.seen(), window: .init(start: 1, min: 1, max: 1))
    try bench.set("level", .number(10), now: true)
    try bench.set("e/light", .number(50), now: true)
    #expect(bench.send() == ["50"])
    try bench.report("e/light", 50)

    bench.machine.deviceAwoke(0, at: bench.now)
    #expect(bench.send() == ["10"])
    bench.pass(5000)

    #expect(bench.told().last == "level failed 10: not confirmed within 5s")
    #expect(bench.machine.sendQueue.laneStatuses.first?.lost == 0)
  }

  @Test func `while the broker is gone the device goes to sleep again`() throws {
    var bench = Self.bench(.level())
    try bench.set("level", .number(10), now: true)
    bench.machine.deviceAwoke(0, at: bench.now)
    bench.connect(false)
    bench.connect(true)
    #expect(bench.send().isEmpty)
    bench.machine.deviceAwoke(0, at: bench.now)
    #expect(bench.send() == ["10"])
  }

  @Test func `a device that sleeps no more after a reload gets its value`() throws {
    var bench = Self.bench(.level())
    try bench.set("level", .number(10), now: true)
    var device = bench.machine.registry.devices[0]
    device.awake = nil
    let devices = [device, bench.machine.registry.devices[1]]
    bench.machine.beginReload(Registry(devices, continuing: bench.machine.registry))
    while bench.machine.isReloading { _ = bench.machine.continueReload(keys: 10, at: bench.now) }
    #expect(bench.send() == ["10"])
  }

  @Test(arguments: [("awake", true), ("AWAKE", true), ("asleep", false)])
  func `only the payload that means awake counts`(word: String, isAwake: Bool) {
    let source = AwakeSource(topic: "t", value: .array(["awake", "announce"]))
    #expect(source.isAwake(in: .string(word)) == isAwake)
    #expect(AwakeSource(topic: "t").isAwake(in: .string(word)))
  }
}

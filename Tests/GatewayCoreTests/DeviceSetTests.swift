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

/// Several values of one device at one instant.
@Suite struct DeviceSetTests {
  private static func lamp() -> Device {
    var power = CoreBench.number("power")
    var level = CoreBench.number("level")
    power.command = .init(
      topic: "lamp/set",
      payload: PayloadTemplate(.object([.init("power", "$value")]))
    )
    level.command = .init(
      topic: "lamp/set",
      payload: PayloadTemplate(.object([.init("level", "$value")]))
    )
    var lamp = Device(id: "lamp", name: "Lamp", properties: [power, level])
    lamp.merge = true
    return lamp
  }

  private static func set(
    _ values: [(String, Double)],
    of bench: inout CoreBench,
    now: Bool = false
  ) throws(ValidationError) {
    var changes: [(key: KeyIndex, value: Value)] = []
    for (key, value) in values {
      changes.append((try bench.core.registry.index(of: key), .number(value)))
    }
    try bench.core.change(changes, at: bench.now, ChangeOptions(skipsQuiet: now))
  }

  @Test func `without the quiet period one message carries all of them`() throws {
    var bench = CoreBench(isJournalled: false, devices: [Self.lamp()])
    try Self.set([("lamp/power", 1), ("lamp/level", 40)], of: &bench, now: true)
    let published = bench.published()
    #expect(published.count == 1)
    #expect(published.first?.contains(#""power":1"#) == true)
    #expect(published.first?.contains(#""level":40"#) == true)
  }

  @Test func `with it they settle as if each were set`() throws {
    var bench = CoreBench(isJournalled: false, devices: [Self.lamp()])
    try Self.set([("lamp/power", 1), ("lamp/level", 40)], of: &bench)
    #expect(bench.published().isEmpty)
    bench.pass(300)
    #expect(bench.published().count == 1)
  }

  @Test func `none is accepted if one could not be kept through a crash`() throws {
    var bench = CoreBench()
    try bench.set("fan/swing", .number(7))
    _ = bench.step()
    bench.commitEnds()
    _ = bench.step()
    try bench.set("blind/position", .number(1))
    bench.pass(200)
    #expect(bench.step().contains("write"))
    bench.core.pipeline.storeFinished(.failed(.diskFull), at: bench.now)
    _ = bench.step()
    let pending = bench.core.commands.dispatcher.pendingCount

    // An older value of the swing is on the disk.
    var refusal: ValidationError?
    do throws(ValidationError) {
      try Self.set([("fan/speed", 2), ("fan/swing", 8)], of: &bench)
    } catch {
      refusal = error
    }
    #expect(refusal?.description.contains("older value") == true)
    let after = bench.core.commands.dispatcher.pendingCount
    #expect(after == pending)
    #expect(!bench.step().contains { $0.hasPrefix("emit accepted") })
  }
}

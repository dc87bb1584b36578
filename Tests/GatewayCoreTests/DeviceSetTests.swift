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
    bench.core.storeFinished(.failed(.diskFull), at: bench.now)
    _ = bench.step()
    let pending = bench.core.commands.pendingCount

    // An older value of the swing is on the disk.
    var refusal: ValidationError?
    do throws(ValidationError) {
      try Self.set([("fan/speed", 2), ("fan/swing", 8)], of: &bench)
    } catch {
      refusal = error
    }
    #expect(refusal?.description.contains("older value") == true)
    let after = bench.core.commands.pendingCount
    #expect(after == pending)
    #expect(!bench.step().contains { $0.hasPrefix("emit accepted") })
  }

  // MARK: - Values that imply others

  private static func dimmable(_ id: String = "lamp", merges: Bool = true) -> Device {
    func object(_ member: String) -> CommandEndpoint {
      .init(
        topic: merges ? "\(id)/set" : "\(id)/\(member)",
        payload: PayloadTemplate(.object([.init(member, "$value")]))
      )
    }
    var power = CoreBench.number("power")
    power.policy = Policy(delay: .milliseconds(20))
    power.command = object("power")
    power.state = StateSource(topic: id, value: .whole)
    var level = CoreBench.number("level")
    level.command = object("level")
    level.implies = [Implication(property: "power", value: .number(1))]
    var lamp = Device(id: id, name: "Lamp", properties: [power, level])
    lamp.merge = merges
    return lamp
  }

  private static func all(_ members: Device...) -> [Device] {
    var group = Device(
      id: "all",
      name: "All",
      properties: DeviceGroup.sharedProperties(of: members)
    )
    group.group = DeviceGroup(members: members.map(\.id))
    return members + [group]
  }

  @Test(arguments: [["power", "level"], ["level", "power"]], ["lamp", "all"])
  func `a stated off wins, and the brightness rides in its message`(
    _ names: [String],
    _ id: String
  ) throws {
    var bench = CoreBench(isJournalled: false, devices: Self.all(Self.dimmable()))
    let power = try bench.core.registry.index(of: "lamp/power")
    bench.core.reported(power, 0, source: 0, at: bench.now)
    _ = bench.published()
    let values = names.map { ("\(id)/\($0)", $0 == "power" ? 0.0 : 40.0) }
    try Self.set(values, of: &bench)
    bench.pass(300)
    let published = bench.published()
    #expect(published.count == 1)
    #expect(published.first?.contains(#""power":0"#) == true)
    #expect(published.first?.contains(#""level":40"#) == true)
    bench.pass(60_000)
    #expect(bench.published().isEmpty)
  }

  @Test func `a brightness that waits for the disk rides in the message of its off`() throws {
    var bench = CoreBench(devices: [Self.dimmable()])
    try bench.set("lamp/level", .number(30))
    #expect(bench.step().contains("write"))
    bench.commitEnds()
    try Self.set([("lamp/level", 40), ("lamp/power", 0)], of: &bench)
    // The off must not be followed by the brightness of before: the next commit does not wait.
    #expect(bench.step().contains("write"))
    bench.pass(20)
    #expect(bench.published().isEmpty)
    bench.commitEnds()
    let published = bench.published()
    #expect(published.count == 1)
    #expect(published.first?.contains(#""power":0"#) == true)
    #expect(published.first?.contains(#""level":40"#) == true)
  }

  @Test func `after a crash the brightness rides in the message of its off`() throws {
    var bench = CoreBench(devices: [Self.dimmable()])
    try Self.set([("lamp/level", 40), ("lamp/power", 0)], of: &bench)
    #expect(bench.step().contains("write"))
    bench.commitEnds()
    var next = bench.crashed(devices: [Self.dimmable()])
    let published = next.published() + next.published()
    #expect(published.count == 1)
    #expect(published.first?.contains(#""power":0"#) == true)
    #expect(published.first?.contains(#""level":40"#) == true)
    next.acknowledgeAll()
    next.pass(60_000)
    #expect(next.published().isEmpty)
  }

  @Test(arguments: [true, false])
  func `where they do not share a message the brightness ends`(isCancelled: Bool) throws {
    var bench = CoreBench(isJournalled: false, devices: [Self.dimmable(merges: false)])
    let power = try bench.core.registry.index(of: "lamp/power")
    try Self.set([("lamp/level", 40), ("lamp/power", 0)], of: &bench)
    if isCancelled {
      bench.core.cancel(power, at: bench.now, source: "cli")
    } else {
      bench.pass(20)
      #expect(bench.published().map { $0.contains(#""power":0"#) } == [true])
    }
    bench.pass(60_000)
    #expect(bench.published().isEmpty)
    #expect(bench.core.status(try bench.core.registry.index(of: "lamp/level")).phase == .superseded)
  }

  @Test func `a stated on and a brightness are one message`() throws {
    var bench = CoreBench(isJournalled: false, devices: [Self.dimmable()])
    try Self.set([("lamp/level", 40), ("lamp/power", 1)], of: &bench)
    bench.pass(300)
    #expect(bench.published().count == 1)
  }

  @Test func `a scene that states off leaves the lamp off`() throws {
    var bench = CoreBench(isJournalled: false, devices: [Self.dimmable(merges: false)])
    let (power, level) = (
      try bench.core.registry.index(of: "lamp/power"),
      try bench.core.registry.index(of: "lamp/level")
    )
    let results = bench.core.changeEach(
      [(power, .number(0)), (level, .number(40))],
      at: bench.now,
      ChangeOptions()
    )
    #expect(results == [nil, nil])
    bench.pass(1000)
    #expect(bench.published().map { $0.contains(#""power":0"#) } == [true])
  }

  @Test func `off for a group ends the brightness of its members`() throws {
    var bench = CoreBench(
      isJournalled: false,
      devices: Self.all(Self.dimmable("a"), Self.dimmable("b"))
    )
    try bench.set("a/level", .number(80))
    bench.pass(50)
    try bench.set("all/power", .number(0))
    bench.pass(1000)
    let published = bench.published()
    #expect(published.count == 2)
    #expect(published.allSatisfy { $0.contains(#""power":0"#) && !$0.contains("level") })
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing

@testable import GatewayCore
import Values

/// One message on a group's own topic, in place of one for each member, where it can do no harm.
@Suite struct GroupMessageTests {
  private static func property(_ id: String, _ kind: ValueKind, of device: String) -> Property {
    var property = Property(
      id: id,
      kind: kind,
      policy: Policy(delay: .milliseconds(300)),
      command: endpoint(id, "\(device)/set")
    )
    property.state = StateSource(topic: device, value: .whole)
    property.confirm = Confirmation(retries: 1)
    return property
  }

  private static func endpoint(_ id: String, _ topic: String) -> CommandEndpoint {
    CommandEndpoint(
      topic: topic,
      payload: PayloadTemplate(.object([.init(id, .string(PayloadTemplate.placeholder))]))
    )
  }

  private static func lamp(
    _ id: String,
    hold: HoldRule? = nil,
    retries: Int = 1,
    implies: Bool = false
  ) -> Device {
    var level = property("level", .number(NumberRule(range: 0...100, step: 1)), of: id)
    level.hold = hold
    level.confirm = Confirmation(retries: retries)
    if implies { level.implies = [Implication(property: "power", value: .boolean(true))] }
    level.urgent = [.number(0)]
    var power = property("power", .boolean, of: id)
    power.policy = Policy(delay: .milliseconds(20))
    let button = Property(
      id: "button",
      kind: .action(["blink"]),
      policy: Policy(delay: .zero),
      command: endpoint("button", "\(id)/set")
    )
    var device = Device(id: id, name: id, properties: [level, power, button])
    device.lane = "mesh"
    device.merge = true
    device.availability = [
      AvailabilitySource(topic: "\(id)/up", value: .whole, online: "yes", offline: "no")
    ]
    return device
  }

  private static func house(
    _ lamps: [Device] = ["a", "b", "c"].map { lamp($0) },
    isJournalled: Bool = false,
    window: Int? = nil,
    rate: Double? = nil
  ) -> CoreBench {
    var group = Device(id: "all", name: "All", properties: DeviceGroup.sharedProperties(of: lamps))
    group.group = DeviceGroup(members: lamps.map(\.id))
    group.merge = true
    for place in group.properties.indices {
      group.properties[place].command = endpoint(group.properties[place].id, "all/set")
    }
    let limits = LaneLimits(
      rate: rate.map { .init(perSecond: $0, burst: 1) },
      window: window.map { .init(start: $0, min: $0, max: $0) }
    )
    return CoreBench(isJournalled: isJournalled, devices: lamps + [group], lanes: ["mesh": limits])
  }

  /// What is published until nothing more is; the broker acknowledges all of it.
  private static func published(_ bench: inout CoreBench, after milliseconds: Int = 0) -> [String] {
    bench.pass(milliseconds)
    var published: [String] = []
    while case let new = bench.published(), !new.isEmpty {
      published += new
      bench.acknowledgeAll()
    }
    return published
  }

  private static func report(_ key: String, _ value: JSONValue, in bench: inout CoreBench) throws {
    let index = try bench.core.registry.index(of: key)
    bench.core.reported(index, value, source: 0, at: bench.now)
  }

  private static func change(
    _ change: ValueChange,
    of key: String,
    in bench: inout CoreBench
  ) throws {
    try bench.core.change(change, of: bench.core.registry.index(of: key), at: bench.now)
  }

  private static func setAvailable(_ id: String, _ isOnline: Bool, in bench: inout CoreBench) throws
  {
    let device = try bench.core.registry.deviceIndex(of: id)
    bench.core.commands.availabilityChanged(
      of: device,
      source: 0,
      isOnline: isOnline,
      at: bench.now
    )
  }

  private static func single(_ payload: String, _ members: String...) -> [String] {
    members.map { "publish \($0)/set \(payload)" }
  }

  // MARK: - What nobody asked the group for

  /// A house of six lamps whose group the bridge has announced.
  private static func announcedHouse(
    retries: Int = 1,
    implies: Bool = false
  ) throws -> CoreBench {
    var bench = house("abcdef".map { lamp(String($0), retries: retries, implies: implies) })
    bench.core.setBridgeGroups([try bench.core.registry.deviceIndex(of: "all")])
    return bench
  }

  /// The values of a scene that sets the levels of these lamps.
  private static func scene(
    _ lamps: String = "abcdef",
    _ level: Double = 40,
    in bench: borrowing CoreBench
  ) throws -> [(key: KeyIndex, value: Value)] {
    let registry = bench.core.registry
    return try lamps.map { (try registry.index(of: "\($0)/level"), .number(level)) }
  }

  /// What a scene sends; none of its values is rejected.
  private static func applied(
    _ values: [(key: KeyIndex, value: Value)],
    in bench: inout CoreBench
  ) -> [String] {
    let results = bench.core.changeEach(values, at: bench.now, ChangeOptions())
    #expect(results.allSatisfy { $0 == nil })
    return published(&bench, after: 300)
  }

  private static let alone = "abcdef".map { #"publish \#($0)/set {"level":40}"# }

  @Test func `what a scene gives all members of a bridge's group is one message`() throws {
    var bench = try Self.announcedHouse()
    let values = try Self.scene(in: bench)
    #expect(Self.applied(values, in: &bench) == [#"publish all/set {"level":40}"#])
    for name in "abcdef" { try Self.report("\(name)/level", .integer(40), in: &bench) }
    for name in "abcdef" { #expect(try bench.phase(of: "\(name)/level") == .confirmed) }
    #expect(try bench.phase(of: "all/level") == nil)
    #expect(Self.published(&bench, after: 20_000).isEmpty)
  }

  @Test(arguments: [0, 1])
  func `a member that misses the message of a scene gets its own`(retries: Int) throws {
    var bench = try Self.announcedHouse(retries: retries)
    let values = try Self.scene(in: bench)
    _ = Self.applied(values, in: &bench)
    for name in "abcde" { try Self.report("\(name)/level", .integer(40), in: &bench) }
    #expect(Self.published(&bench, after: 5000) == [#"publish f/set {"level":40}"#])
  }

  @Test func `members get messages of their own unless the bridge has the same group`() throws {
    var bench = Self.house("abcdef".map { Self.lamp(String($0)) })
    let values = try Self.scene(in: bench)
    #expect(Self.applied(values, in: &bench).sorted() == Self.alone)
  }

  @Test func `members get messages of their own where one gets another value`() throws {
    var bench = try Self.announcedHouse()
    var values = try Self.scene(in: bench)
    values[2].value = .number(41)
    #expect(Self.applied(values, in: &bench).count == 6)
  }

  @Test func `members get messages of their own where each gets another value too`() throws {
    var bench = try Self.announcedHouse()
    var values = try Self.scene(in: bench)
    for (place, name) in "abcdef".enumerated() {
      let key = try bench.core.registry.index(of: "\(name)/power")
      values.append((key, .boolean(place % 2 == 0)))
    }
    #expect(Self.applied(values, in: &bench).count == 6)
  }

  @Test func `a level that is sent with an off gets to every member`() throws {
    var bench = try Self.announcedHouse(implies: true)
    for name in "abcdef" { try Self.report("\(name)/power", .boolean(true), in: &bench) }
    var values = try Self.scene(in: bench)
    for name in "abcdef" {
      values.append((try bench.core.registry.index(of: "\(name)/power"), .boolean(false)))
    }
    let sent = Self.applied(values, in: &bench)
    #expect(sent.count == 6)
    #expect(sent.allSatisfy { $0.contains(#""level":40"#) && $0.contains(#""power":false"#) })
  }

  @Test func `members get messages of their own where the scene leaves one out`() throws {
    var bench = try Self.announcedHouse()
    #expect(Self.applied(try Self.scene("abcde", in: bench), in: &bench).count == 5)
  }

  @Test func `a group of few members gets no message that nobody asked it for`() throws {
    var bench = Self.house()
    bench.core.setBridgeGroups([try bench.core.registry.deviceIndex(of: "all")])
    #expect(Self.applied(try Self.scene("abc", in: bench), in: &bench).count == 3)
  }

  @Test func `a mesh gets no second broadcast of a scene within a second`() throws {
    var bench = try Self.announcedHouse()
    _ = Self.applied(try Self.scene(in: bench), in: &bench)
    #expect(Self.applied(try Self.scene("abcdef", 50, in: bench), in: &bench).count == 6)
    bench.pass(1000)
    let later = Self.applied(try Self.scene("abcdef", 60, in: bench), in: &bench)
    #expect(later == [#"publish all/set {"level":60}"#])
  }

  @Test func `after a lost connection a group is unknown until it is announced again`() throws {
    var bench = try Self.announcedHouse()
    let values = try Self.scene(in: bench)
    _ = bench.core.changeEach(values, at: bench.now, ChangeOptions())
    bench.loseAll()
    #expect(Self.published(&bench, after: 300).sorted() == Self.alone)
  }

  @Test func `the preview of a scene shows the message of the group`() throws {
    let bench = try Self.announcedHouse()
    let values = try Self.scene(in: bench)
    let carried = bench.core.carried(values, at: bench.now)
    #expect(carried.map { bench.core.registry[$0.key].key } == ["all/level"])
    #expect(carried.map(\.value) == [.number(40)])
  }

  // MARK: - One message

  @Test func `a change of the group is one message for all members`() throws {
    var bench = Self.house()
    try bench.set("all/level", .number(40))
    #expect(Self.published(&bench, after: 300) == [#"publish all/set {"level":40}"#])
  }

  @Test func `the newest of several changes is one message`() throws {
    var bench = Self.house()
    for value in 1...20 { try bench.set("all/level", .number(Double(value))) }
    #expect(Self.published(&bench, after: 300) == [#"publish all/set {"level":20}"#])
  }

  @Test func `properties that change at one instant share the message`() throws {
    var bench = Self.house()
    try bench.set("all/level", .number(40))
    try bench.set("all/power", .boolean(true))
    #expect(
      Self.published(&bench, after: 20) == [#"publish all/set {"power":true,"level":40}"#]
    )
    #expect(Self.published(&bench, after: 300).isEmpty)
  }

  /// Lamps whose level turns them on; all are on at 10.
  private static func impliedHouse(isJournalled: Bool = false) throws -> CoreBench {
    let lamps = ["a", "b", "c"].map { lamp($0, implies: true) }
    var bench = house(lamps, isJournalled: isJournalled)
    for lamp in lamps {
      try report("\(lamp.id)/power", .boolean(true), in: &bench)
      try report("\(lamp.id)/level", .integer(10), in: &bench)
    }
    return bench
  }

  /// Sets the group's level, and an off that the level rides with.
  private static func setOffWithLevel(_ level: Double = 40, in bench: inout CoreBench) throws {
    let registry = bench.core.registry
    let values: [(key: KeyIndex, value: Value)] = [
      (try registry.index(of: "all/level"), .number(level)),
      (try registry.index(of: "all/power"), .boolean(false)),
    ]
    try bench.core.change(values, at: bench.now, ChangeOptions())
  }

  private static let offWithLevel = #"publish all/set {"power":false,"level":40}"#
  private static let ownOffWithLevel = #"{"level":40,"power":false}"#

  @Test(arguments: [false, true])
  func `an off and the level that is sent with it are one message`(isJournalled: Bool) throws {
    var bench = try Self.impliedHouse(isJournalled: isJournalled)
    try Self.setOffWithLevel(in: &bench)
    if isJournalled {
      _ = bench.step()
      bench.commitEnds()
    }
    #expect(Self.published(&bench, after: 300) == [Self.offWithLevel])
    for lamp in ["a", "b", "c"] {
      try Self.report("\(lamp)/power", .boolean(false), in: &bench)
      #expect(try bench.phase(of: "\(lamp)/power") == .confirmed)
    }
    #expect(Self.published(&bench, after: 20_000).isEmpty)
  }

  @Test func `a member that is off already gets the level with the others`() throws {
    var bench = try Self.impliedHouse()
    try Self.report("a/power", .boolean(false), in: &bench)
    try Self.setOffWithLevel(in: &bench)
    #expect(Self.published(&bench, after: 300) == [Self.offWithLevel])
  }

  @Test func `an off whose level one member must not get is sent one by one with the level`() throws
  {
    var bench = try Self.impliedHouse()
    try bench.set("b/level", .number(70), skipsQuiet: true)
    #expect(bench.published() == Self.single(#"{"level":70}"#, "b"))
    try Self.setOffWithLevel(in: &bench)
    bench.pass(300)
    #expect(bench.published() == Self.single(Self.ownOffWithLevel, "a", "c"))
    bench.acknowledgeAll()
    #expect(Self.published(&bench) == Self.single(Self.ownOffWithLevel, "b"))
  }

  @Test func `the newest off and its level are one message`() throws {
    var bench = try Self.impliedHouse()
    try Self.setOffWithLevel(in: &bench)
    try Self.setOffWithLevel(60, in: &bench)
    #expect(
      Self.published(&bench, after: 300) == [#"publish all/set {"power":false,"level":60}"#]
    )
  }

  @Test func `an offline member gets the off and its level later`() throws {
    var bench = try Self.impliedHouse()
    try Self.setAvailable("b", false, in: &bench)
    try Self.setOffWithLevel(in: &bench)
    #expect(Self.published(&bench, after: 300) == [Self.offWithLevel])
    try Self.setAvailable("b", true, in: &bench)
    #expect(Self.published(&bench) == Self.single(Self.ownOffWithLevel, "b"))
  }

  @Test func `an urgent value is one message at once`() throws {
    var bench = Self.house()
    try bench.set("all/level", .number(0))
    #expect(Self.published(&bench) == [#"publish all/set {"level":0}"#])
  }

  @Test func `each press of a button is one message`() throws {
    var bench = Self.house(window: 1)
    for _ in 1...2 { try bench.set("all/button", .text("blink")) }
    let press = #"publish all/set {"button":"blink"}"#
    #expect(Self.published(&bench) == [press])
    #expect(Self.published(&bench, after: 2000) == [press])
  }

  @Test func `an offline member gets its own message later`() throws {
    var bench = Self.house()
    try Self.setAvailable("b", false, in: &bench)
    try bench.set("all/level", .number(40))
    #expect(Self.published(&bench, after: 300) == [#"publish all/set {"level":40}"#])
    try Self.setAvailable("b", true, in: &bench)
    #expect(Self.published(&bench) == Self.single(#"{"level":40}"#, "b"))
  }

  @Test func `a member that has the value is not waited for`() throws {
    var bench = Self.house()
    try Self.report("a/level", 40, in: &bench)
    try bench.set("all/level", .number(40))
    #expect(Self.published(&bench, after: 300) == [#"publish all/set {"level":40}"#])
    #expect(try bench.phase(of: "a/level") == .unchanged)
    #expect(try bench.phase(of: "b/level") == .sent)
  }

  @Test func `a member that comes to have the value before its turn is not waited for`() throws {
    var bench = Self.house(rate: 1)
    try bench.set("a/power", .boolean(true))
    _ = Self.published(&bench, after: 20)
    try bench.set("all/level", .number(40))
    #expect(Self.published(&bench, after: 300).isEmpty)
    try Self.report("b/level", 40, in: &bench)
    #expect(Self.published(&bench, after: 700) == [#"publish all/set {"level":40}"#])
    #expect(try bench.phase(of: "b/level") == .unchanged)
  }

  @Test func `a member on its way has the value that it moves to, and no other`() throws {
    for (value, phase) in [(40, Phase.sent), (80, .unchanged)] {
      var bench = Self.house()
      try Self.report("a/level", 10, in: &bench)
      try bench.set("a/level", .number(80))
      #expect(Self.published(&bench, after: 300) == Self.single(#"{"level":80}"#, "a"))
      for reported in [80, 40] as [JSONValue] { try Self.report("a/level", reported, in: &bench) }
      try bench.set("all/level", .number(Double(value)))
      #expect(
        Self.published(&bench, after: 300) == [#"publish all/set {"level":\#(value)}"#]
      )
      #expect(try bench.phase(of: "a/level") == phase)
    }
  }

  // MARK: - One by one

  @Test func `a single member that needs the value gets its own message`() throws {
    var bench = Self.house()
    for lamp in ["a", "b"] { try Self.report("\(lamp)/level", 40, in: &bench) }
    try bench.set("all/level", .number(40))
    #expect(Self.published(&bench, after: 300) == Self.single(#"{"level":40}"#, "c"))
  }

  @Test func `a member with a newer value keeps it`() throws {
    var bench = Self.house()
    try bench.set("all/level", .number(40))
    try bench.set("b/level", .number(50))
    #expect(
      Set(Self.published(&bench, after: 300))
        == Set(Self.single(#"{"level":40}"#, "a", "c") + Self.single(#"{"level":50}"#, "b"))
    )
  }

  @Test func `a member that got a newer value at once keeps it`() throws {
    var bench = Self.house()
    try bench.set("all/level", .number(40))
    try bench.set("b/level", .number(50), skipsQuiet: true)
    #expect(Self.published(&bench) == Self.single(#"{"level":50}"#, "b"))
    #expect(Self.published(&bench, after: 300) == Self.single(#"{"level":40}"#, "a", "c"))
  }

  @Test func `a member that a person holds is left alone`() throws {
    let rule = HoldRule(duration: .seconds(60), hands: ["panel"])
    var bench = Self.house([Self.lamp("a"), Self.lamp("b", hold: rule), Self.lamp("c")])
    let panel = ChangeOptions(origin: ChangeOrigin(source: "panel"), skipsQuiet: true)
    let key = try bench.core.registry.index(of: "b/level")
    try bench.core.change(.set(.number(10)), of: key, at: bench.now, panel)
    _ = Self.published(&bench)
    try bench.set("all/level", .number(40))
    #expect(Self.published(&bench, after: 300) == Self.single(#"{"level":40}"#, "a", "c"))
  }

  @Test func `members that step to different values get a message each`() throws {
    var bench = Self.house()
    for (lamp, level) in [("a", 10), ("b", 20), ("c", 20)] {
      try Self.report("\(lamp)/level", .integer(Int64(level)), in: &bench)
    }
    try Self.change(.step(5), of: "all/level", in: &bench)
    #expect(
      Self.published(&bench, after: 300)
        == Self.single(#"{"level":15}"#, "a") + Self.single(#"{"level":25}"#, "b", "c")
    )
  }

  @Test func `a member whose broker answer is missing gets a message of its own`() throws {
    var bench = Self.house()
    try bench.set("b/level", .number(50))
    bench.pass(300)
    #expect(bench.published() == Self.single(#"{"level":50}"#, "b"))
    try bench.set("all/level", .number(40))
    bench.pass(300)
    #expect(bench.published() == Self.single(#"{"level":40}"#, "a", "c"))
    bench.acknowledgeAll()
    #expect(Self.published(&bench) == Self.single(#"{"level":40}"#, "b"))
  }

  @Test func `an attempt after the first goes to the member alone`() throws {
    var bench = Self.house()
    try bench.set("all/level", .number(40))
    #expect(Self.published(&bench, after: 300).count == 1)
    for lamp in ["a", "b"] { try Self.report("\(lamp)/level", 40, in: &bench) }
    #expect(Self.published(&bench, after: 5000) == Self.single(#"{"level":40}"#, "c"))
    try Self.report("c/level", 40, in: &bench)
    _ = bench.step()
    #expect(try bench.phase(of: "all/level") == .confirmed)
  }

  @Test func `what is lost with the connection is sent to each member`() throws {
    var bench = Self.house()
    try bench.set("all/level", .number(40))
    bench.pass(300)
    #expect(bench.published() == [#"publish all/set {"level":40}"#])
    bench.loseAll()
    #expect(Self.published(&bench) == Self.single(#"{"level":40}"#, "a", "b", "c"))
  }

  // MARK: - The lane

  @Test func `the message takes one token`() throws {
    var bench = Self.house(rate: 1)
    try bench.set("all/level", .number(40))
    try bench.set("all/power", .boolean(true))
    #expect(Self.published(&bench, after: 300).count == 1)
    try bench.set("a/power", .boolean(false))
    #expect(Self.published(&bench, after: 300).isEmpty)
    #expect(Self.published(&bench, after: 700).count == 1)
  }

  @Test func `the message has one place in the window until the last member confirms it`() throws {
    var bench = Self.house(window: 1)
    try bench.set("all/level", .number(40))
    #expect(Self.published(&bench, after: 300).count == 1)
    try bench.set("a/power", .boolean(true))
    #expect(Self.published(&bench, after: 20).isEmpty)
    for lamp in ["a", "b"] {
      try Self.report("\(lamp)/level", 40, in: &bench)
      #expect(Self.published(&bench).isEmpty)
    }
    try Self.report("c/level", 40, in: &bench)
    #expect(Self.published(&bench) == Self.single(#"{"power":true}"#, "a"))
  }

  @Test func `a newer message of the group takes the place of the older one`() throws {
    var bench = Self.house(window: 2)
    for value in [40, 50, 60] {
      try bench.set("all/level", .number(Double(value)))
      #expect(Self.published(&bench, after: 300).count == 1)
    }
    #expect(bench.core.commands.sendQueue.laneStatuses.first?.inFlight == 1)
    for lamp in ["a", "b", "c"] { try Self.report("\(lamp)/level", 60, in: &bench) }
    #expect(bench.core.commands.sendQueue.laneStatuses.first?.inFlight == 0)
  }

  // MARK: - The journal

  @Test func `with a journal the message waits until all members are on the disk`() throws {
    var bench = Self.house(isJournalled: true)
    try bench.set("all/level", .number(40))
    _ = bench.step()
    bench.commitEnds()
    #expect(Self.published(&bench, after: 300) == [#"publish all/set {"level":40}"#])
  }
}

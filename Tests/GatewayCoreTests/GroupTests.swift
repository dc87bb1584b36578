// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

@testable import GatewayCore

/// A change of a group is one of each member's, and ends when all of those have ended.
@Suite struct GroupTests {
  private static func lamp(
    _ id: String,
    to maximum: Double = 100,
    confirms: Bool = false,
    hold: HoldRule? = nil
  ) -> Device {
    var level = CoreBench.number("level", to: maximum)
    level.command.topic = "\(id)/set"
    level.hold = hold
    if confirms {
      level.state = StateSource(topic: id, value: .whole)
      level.confirm = Confirmation()
    }
    var power = Property(
      id: "power",
      kind: .boolean,
      policy: Policy(delay: .milliseconds(20)),
      command: .init(topic: "\(id)/power", payload: PayloadTemplate("$value"))
    )
    power.state = StateSource(topic: "\(id)/power", value: .whole)
    return Device(id: id, name: id, properties: [level, power])
  }

  private static func house(_ lamps: Device..., isJournalled: Bool = false) -> CoreBench {
    var group = Device(
      id: "all",
      name: "All",
      properties: DeviceGroup.sharedProperties(of: lamps)
    )
    group.group = DeviceGroup(members: lamps.map(\.id))
    return CoreBench(isJournalled: isJournalled, devices: lamps + [group])
  }

  /// The events of one step, with their reasons.
  private static func events(_ bench: inout CoreBench) -> [String] {
    var host = HostState()
    host.room = 1
    var events: [String] = []
    while let effect = bench.core.nextEffect(at: bench.now, host: host) {
      switch effect {
      case .emit(let event):
        let reason = event.reason.map { ": \($0)" } ?? ""
        let group = event.origin?.groupCommand?.name.map { " of \($0)" } ?? ""
        events.append("\(bench.core.registry[event.key].key) \(event.phase)\(group)\(reason)")
      case .publish(let publish):
        bench.core.commandFinished(publish.token, .acknowledged, at: bench.now)
      default: break
      }
    }
    return events
  }

  private static func report(
    _ key: String,
    _ value: JSONValue,
    in bench: inout CoreBench
  ) throws {
    let index = try bench.core.registry.index(of: key)
    bench.core.reported(index, value, source: 0, at: bench.now)
  }

  private static func status(_ key: String, of bench: borrowing CoreBench) throws -> KeyStatus {
    bench.core.status(try bench.core.registry.index(of: key))
  }

  @Test func `only the newest of several changes reaches each member`() throws {
    var bench = Self.house(Self.lamp("a"), Self.lamp("b"))
    for value in 1...20 { try bench.set("all/level", .number(Double(value))) }
    bench.pass(300)
    #expect(bench.published() == ["publish a/set 20", "publish b/set 20"])
  }

  @Test func `the group has what all members share`() {
    let shared = DeviceGroup.sharedProperties(of: [
      Self.lamp("a", to: 100, confirms: true), Self.lamp("b", to: 50),
      Device(id: "c", name: "c", properties: [CoreBench.number("level", to: 254)]),
    ])
    #expect(shared.map(\.id) == ["level"])
    #expect(shared.first?.kind.numberRule?.range == 0...50)
    #expect(shared.first?.confirm == nil)
  }

  @Test func `it is accepted once, and confirmed when all members are`() throws {
    var bench = Self.house(Self.lamp("a", confirms: true), Self.lamp("b", confirms: true))
    try bench.set("all/level", .number(40))
    #expect(
      Self.events(&bench) == [
        "a/level accepted of all", "b/level accepted of all", "all/level accepted",
      ]
    )
    bench.pass(300)
    #expect(Self.events(&bench).last == "all/level sent")
    try Self.report("a/level", 40, in: &bench)
    #expect(Self.events(&bench) == ["a/level confirmed of all"])
    try Self.report("b/level", 40, in: &bench)
    #expect(Self.events(&bench) == ["b/level confirmed of all", "all/level confirmed"])
    #expect(try Self.status("all/level", of: bench).phase == .confirmed)
  }

  @Test func `a failure names the members that are not confirmed`() throws {
    var bench = Self.house(Self.lamp("a", confirms: true), Self.lamp("b", confirms: true))
    try bench.set("all/level", .number(40))
    _ = Self.events(&bench)
    bench.pass(300)
    _ = Self.events(&bench)
    _ = Self.events(&bench)
    try Self.report("a/level", 40, in: &bench)
    bench.pass(5000)
    #expect(Self.events(&bench).last == "all/level failed: b: not confirmed within 5s")
  }

  @Test func `its value is unknown while members differ`() throws {
    var bench = Self.house(Self.lamp("a", confirms: true), Self.lamp("b", confirms: true))
    try Self.report("a/level", 10, in: &bench)
    try Self.report("b/level", 10, in: &bench)
    _ = bench.step()
    #expect(try Self.status("all/level", of: bench).actual == .number(10))
    try bench.set("b/level", .number(30))
    _ = bench.step()
    #expect(try Self.status("all/level", of: bench).target == nil)
    #expect(try Self.status("all/level", of: bench).actual == .number(10))
    try bench.set("a/level", .number(30))
    _ = bench.step()
    #expect(try Self.status("all/level", of: bench).target == .number(30))
  }

  @Test func `a step counts from what each member has`() throws {
    var bench = Self.house(Self.lamp("a", confirms: true), Self.lamp("b", confirms: true))
    try Self.report("a/level", 10, in: &bench)
    try Self.report("b/level", 95, in: &bench)
    let key = try bench.core.registry.index(of: "all/level")
    try bench.core.change(.step(20), of: key, at: bench.now)
    bench.pass(300)
    #expect(bench.published() == ["publish a/set 30", "publish b/set 100"])
  }

  @Test func `a toggle switches all off if one is on`() throws {
    var bench = Self.house(Self.lamp("a"), Self.lamp("b"))
    try Self.report("a/power", true, in: &bench)
    try Self.report("b/power", false, in: &bench)
    let key = try bench.core.registry.index(of: "all/power")
    try bench.core.change(.toggle, of: key, at: bench.now)
    bench.pass(20)
    #expect(bench.published() == ["publish a/power false"])
  }

  @Test func `a toggle switches all on if all are off`() throws {
    var bench = Self.house(Self.lamp("a"), Self.lamp("b"))
    for lamp in ["a", "b"] { try Self.report("\(lamp)/power", false, in: &bench) }
    let key = try bench.core.registry.index(of: "all/power")
    try bench.core.change(.toggle, of: key, at: bench.now)
    bench.pass(20)
    #expect(bench.published() == ["publish a/power true", "publish b/power true"])
  }

  @Test func `a toggle switches a lamp that is on off, also where another one is unknown`() throws {
    var bench = Self.house(Self.lamp("a"), Self.lamp("b"))
    try Self.report("a/power", true, in: &bench)
    let key = try bench.core.registry.index(of: "all/power")
    try bench.core.change(.toggle, of: key, at: bench.now)
    bench.pass(20)
    #expect(bench.published() == ["publish a/power false", "publish b/power false"])
  }

  @Test func `a newer change of a member alone ends the group's`() throws {
    var bench = Self.house(Self.lamp("a"), Self.lamp("b"))
    try bench.set("all/level", .number(40))
    try bench.set("a/level", .number(50))
    bench.pass(300)
    #expect(Set(bench.published()) == ["publish a/set 50", "publish b/set 40"])
    #expect(try Self.status("all/level", of: bench).phase == .accepted)
  }

  @Test func `a person's hold counts for each member`() throws {
    let rule = HoldRule(duration: .seconds(60), hands: ["panel"])
    var bench = Self.house(Self.lamp("a", hold: rule), Self.lamp("b"))
    let key = try bench.core.registry.index(of: "a/level")
    let panel = ChangeOptions(origin: ChangeOrigin(source: "panel"))
    try bench.core.change(.set(.number(10)), of: key, at: bench.now, panel)
    _ = Self.events(&bench)
    try bench.set("all/level", .number(40))
    #expect(Self.events(&bench).contains("a/level rejected of all: held by panel"))
    bench.pass(300)
    var seen = Self.events(&bench)
    seen += Self.events(&bench)
    #expect(seen.contains("all/level failed: a: held by panel"))
    #expect(try Self.status("b/level", of: bench).target == .number(40))
  }

  @Test func `a group whose members all reject a change rejects it`() throws {
    let rule = HoldRule(duration: .seconds(60), hands: ["panel"])
    var bench = Self.house(Self.lamp("a", hold: rule))
    let key = try bench.core.registry.index(of: "a/level")
    let panel = ChangeOptions(origin: ChangeOrigin(source: "panel"))
    try bench.core.change(.set(.number(10)), of: key, at: bench.now, panel)
    #expect(throws: ValidationError.held(by: "panel")) {
      try bench.set("all/level", .number(40))
    }
  }

  @Test func `several values of a group are accepted all or none`() throws {
    let rule = HoldRule(duration: .seconds(60), hands: ["panel"])
    var bench = Self.house(Self.lamp("a", hold: rule), Self.lamp("b", hold: rule))
    let panel = ChangeOptions(origin: ChangeOrigin(source: "panel"))
    for key in ["a/level", "b/level"] {
      let index = try bench.core.registry.index(of: key)
      try bench.core.change(.set(.number(10)), of: index, at: bench.now, panel)
    }
    _ = Self.events(&bench)
    let (power, level) = (
      try bench.core.registry.index(of: "all/power"), try bench.core.registry.index(of: "all/level")
    )
    #expect(throws: ValidationError.inProperty("level", .held(by: "panel"))) {
      try bench.core.change(
        [(power, .boolean(true)), (level, .number(40))],
        at: bench.now,
        ChangeOptions(origin: ChangeOrigin(source: "night"))
      )
    }
    #expect(Self.events(&bench) == [])
    #expect(try Self.status("a/power", of: bench).target == nil)
    // Where one member takes the value, the others reject it for themselves.
    bench.pass(59_000)
    let b = try bench.core.registry.index(of: "b/level")
    try bench.core.change(.set(.number(20)), of: b, at: bench.now, panel)
    bench.pass(2000)
    _ = Self.events(&bench)
    try bench.core.change(
      [(power, .boolean(true)), (level, .number(40))],
      at: bench.now,
      ChangeOptions(origin: ChangeOrigin(source: "night"))
    )
    #expect(try Self.status("a/power", of: bench).target == .boolean(true))
    #expect(try Self.status("a/level", of: bench).target == .number(40))
    #expect(try Self.status("b/level", of: bench).target == .number(20))
  }

  @Test(arguments: [false, true])
  func `a flush of a group is passed on for members that other gateways drive`(
    isHereOnly: Bool
  ) throws {
    var bench = Self.house(Self.lamp("a"), Self.lamp("b"))
    let key = try bench.core.registry.index(of: "all/level")
    bench.core.setElsewhere(true, device: try bench.core.registry.deviceIndex(of: "b"))
    let isAny = bench.core.flush(key, at: bench.now, source: "socket", isHereOnly: isHereOnly)
    #expect(!isAny)
    var passed: [String] = []
    while let effect = bench.core.nextEffect(at: bench.now, host: HostState()) {
      guard case .endElsewhere(let change) = effect else { continue }
      passed.append(bench.core.registry[change.key].key)
    }
    #expect(passed == (isHereOnly ? [] : ["b/level"]))
  }

  /// The command 7 of a group's key 3, which nothing confirms.
  private static func command(
    ofMembers members: [KeyIndex],
    rejected: [(name: String, reason: String)] = [],
    at now: Moment
  ) -> GroupCommands {
    var commands = GroupCommands()
    commands.begin(
      7,
      of: KeyIndex(3),
      .boolean(true),
      members: members,
      rejected: rejected,
      origin: nil,
      canConfirm: false,
      at: now
    )
    return commands
  }

  @Test func `a group of which one member has the value and others reject it fails`() {
    let now = Moment(nanoseconds: 1)
    let (one, other) = (KeyIndex(1), KeyIndex(2))
    let rejected = [(name: "c", reason: "it is full")]
    var commands = Self.command(ofMembers: [one, other], rejected: rejected, at: now)
    let found =
      commands.observe(.sample(one, .unchanged, number: 1, at: now), of: 7, named: "a")
      + commands.observe(.sample(other, .rejected, number: 1, at: now), of: 7, named: "b")
    #expect(found.map(\.phase) == [.accepted, .failed])
    #expect(found.map(\.reason) == Array(repeating: "c: it is full; b: rejected", count: 2))
    #expect(commands.isEmpty)
  }

  @Test(
    arguments: [
      ([.failed, .failed], [.rejected]), ([.failed, .rejected], [.rejected]),
      ([.accepted, .superseded, .failed], [.accepted, .failed]),
    ] as [([Phase], [Phase])]
  )
  func `a group of which no member has stored its value is rejected`(
    of members: [Phase],
    group: [Phase]
  ) {
    let now = Moment(nanoseconds: 1)
    var commands = Self.command(ofMembers: [KeyIndex(1), KeyIndex(2)], at: now)
    var found: [Phase] = []
    for (place, phase) in members.enumerated() {
      let key = KeyIndex(place == members.count - 1 ? 2 : 1)
      let event = CommandEvent.sample(key, phase, number: 1, at: now)
      found += commands.observe(event, of: 7, named: "lamp").map(\.phase)
    }
    #expect(found == group)
    #expect(commands.isEmpty)
  }

  @Test func `a group names the members whose values are held in memory only`() {
    let now = Moment(nanoseconds: 1)
    var commands = Self.command(ofMembers: [KeyIndex(1), KeyIndex(2)], at: now)
    var event = CommandEvent.sample(KeyIndex(1), .accepted, number: 1, at: now)
    event.reason = "held in memory only"
    let first = commands.observe(event, of: 7, named: "a")
    #expect(first.isEmpty)
    let found = commands.observe(
      .sample(KeyIndex(2), .accepted, number: 2, at: now),
      of: 7,
      named: "b"
    )
    #expect(found.map(\.phase) == [.accepted])
    #expect(found.map(\.reason) == ["a: held in memory only"])
  }

  @Test func `with a journal the group is accepted once all members are on the disk`() throws {
    var bench = Self.house(Self.lamp("a"), Self.lamp("b"), isJournalled: true)
    try bench.set("all/level", .number(40))
    #expect(!bench.step().contains { $0.hasPrefix("emit accepted") })
    bench.commitEnds()
    #expect(
      bench.step().filter { $0.hasPrefix("emit") } == [
        "emit accepted a/level", "emit accepted b/level", "emit accepted all/level",
      ]
    )
  }

  @Test func `cancel and flush are about the members`() throws {
    var bench = Self.house(Self.lamp("a"), Self.lamp("b"))
    let key = try bench.core.registry.index(of: "all/level")
    try bench.set("all/level", .number(40))
    let hasCancelled = bench.core.cancel(key, at: bench.now, source: "x")
    #expect(hasCancelled)
    _ = bench.step()
    #expect(try Self.status("all/level", of: bench).phase == .cancelled)
    try bench.set("all/level", .number(50))
    let hasFlushed = bench.core.flush(key, at: bench.now, source: "x")
    #expect(hasFlushed)
    #expect(bench.published() == ["publish a/set 50", "publish b/set 50"])
  }
}

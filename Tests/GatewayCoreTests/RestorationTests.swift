// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
@testable import GatewayCore
import JSON
import LastOut
import LastOutTesting
import Testing
import Values

/// What a lamp gets back that lost its power.
@Suite struct RestorationTests {
  /// A lamp of a bridge, and a person who sets it.
  private struct House: ~Copyable {
    var bench: CoreBench
    private let own = 1
    private let bridge = 0

    init(restore: Set<String> = ["power", "brightness", "warmth", "hue"], journal: Bool = false) {
      bench = CoreBench(isJournalled: journal, devices: [Self.lamp(restore)])
      availability(isOnline: true, source: bridge)
      availability(isOnline: true, source: own)
    }

    private static func lamp(_ restore: Set<String>) -> Device {
      var power = property("power", .boolean)
      var brightness = property("brightness", .integer(NumberRule(range: 0...254, step: 1)))
      brightness.implies = [Implication(property: "power", value: .boolean(true))]
      var warmth = property("warmth", .integer(NumberRule(range: 0...254, step: 1)))
      warmth.excludes = ["hue"]
      var hue = property("hue", .integer(NumberRule(range: 0...360, step: 1)))
      var alarm = property("alarm", .choice(["off", "on"]))
      alarm.urgent = [.text("on"), .text("off")]
      power.restore = restore.contains("power")
      brightness.restore = restore.contains("brightness")
      warmth.restore = restore.contains("warmth")
      hue.restore = restore.contains("hue")
      alarm.restore = true
      let lamp = [power, brightness, warmth, hue, alarm]
      var device = Device(id: "lamp", name: "lamp", properties: lamp)
      let whole = JSONPointer.whole
      device.availability = ["z/bridge/state", "z/lamp/availability"].map {
        AvailabilitySource(topic: $0, value: whole, online: "online", offline: "offline")
      }
      return device
    }

    private static func property(_ id: String, _ kind: ValueKind) -> Property {
      var property = Property(
        id: id,
        kind: kind,
        policy: Policy(delay: .milliseconds(200)),
        command: .init(topic: "z/lamp/\(id)/set", payload: PayloadTemplate("$value"))
      )
      property.states = [StateSource(topic: "z/lamp", value: .whole)]
      property.confirm = Confirmation()
      return property
    }

    mutating func availability(isOnline: Bool, source: Int, isShared: Bool = false) {
      _ = bench.core.availability(
        ofDevice: 0,
        source: source,
        isOnline: isOnline,
        isShared: isShared,
        at: bench.now
      )
    }

    /// The lamp itself went or came back.
    mutating func lamp(isOnline: Bool) { availability(isOnline: isOnline, source: own) }

    /// Its bridge went or came back.
    mutating func bridge(isOnline: Bool) { availability(isOnline: isOnline, source: bridge) }

    /// One message with these values.
    mutating func report(_ values: KeyValuePairs<String, JSONValue>) throws {
      for (id, wire) in values {
        let key = try bench.core.registry.index(of: "lamp/\(id)")
        bench.core.reported(key, wire, source: 0, at: bench.now)
      }
    }

    /// The messages until nothing is left to do for a minute, without what they are confirmed by.
    mutating func published(for seconds: Int = 3) throws -> [String] {
      var found: [String] = []
      for _ in 0..<(seconds * 10) {
        found += bench.published().map { String($0.dropFirst("publish z/lamp/".count)) }
        bench.acknowledgeAll()
        bench.pass(100)
      }
      return found.map { $0.replacing("/set", with: "") }
    }

    /// A person sets a value, and the lamp shows it.
    mutating func set(_ id: String, _ value: Value) throws {
      try bench.set("lamp/\(id)", value)
      _ = try published()
      try report([id: value.json])
      _ = try published()
    }
  }

  /// A lamp that was set to 80 and then had no power for a while.
  private func dark(
    _ prepare: (inout House) throws -> Void = { _ in }
  ) throws -> House {
    var house = House()
    try house.report(["power": true, "brightness": 254, "warmth": 100, "hue": 0])
    try house.set("brightness", .number(80))
    try prepare(&house)
    house.lamp(isOnline: false)
    _ = try house.published(for: 60)
    return house
  }

  @Test func `it gets what it had, once, as one change`() throws {
    var house = try dark()
    house.lamp(isOnline: true)
    #expect(try house.published().isEmpty)
    try house.report(["power": true, "brightness": 254, "warmth": 100, "hue": 0])
    #expect(try house.published(for: 1) == ["brightness 80"])
    try house.report(["power": true, "brightness": 80, "warmth": 100, "hue": 0])
    #expect(try house.published(for: 120).isEmpty)
    // Someone changes it later.
    try house.report(["brightness": 10])
    #expect(try house.published(for: 120).isEmpty)
  }

  @Test func `what excludes a newer value that waits does not come back`() throws {
    var house = House()
    try house.report(["power": true, "brightness": 80, "warmth": 100, "hue": 0])
    try house.set("hue", .number(120))
    try house.bench.set("lamp/warmth", .number(200))
    house.lamp(isOnline: false)
    _ = try house.published(for: 10)
    house.lamp(isOnline: true)
    try house.report(["power": true, "brightness": 80, "warmth": 100, "hue": 0])
    let published = try house.published()
    #expect(published == ["warmth 200"])
  }

  @Test func `after a report as it was, just before its return, another one is by hand`() throws {
    var house = try dark()
    try house.report(["power": true, "brightness": 80])
    house.lamp(isOnline: true)
    _ = try house.published(for: 10)
    try house.report(["power": false])
    #expect(try house.published(for: 5).isEmpty)
  }

  @Test func `a lamp that is off and has the 0 that it is asked for counts from there`() throws {
    var house = House()
    try house.report(["power": true, "brightness": 254])
    try house.set("brightness", .number(80))
    try house.report(["power": false])
    try house.report(["brightness": 0])
    _ = try house.published(for: 60)
    let key = try house.bench.core.registry.index(of: "lamp/brightness")
    #expect(house.bench.core.status(key).target == .number(80))
    try house.bench.set("lamp/brightness", .number(0))
    let published = try house.published()
    #expect(published == [])
    #expect(house.bench.core.status(key).target == .number(0))
  }

  @Test func `it gets it back soon after its command, too`() throws {
    for (first, then) in [(100, 254), (254, 254), (0, 40), (254, 0)] as [(Double, Double)] {
      var house = House()
      try house.report(["power": true, "brightness": JSONValue(shortest: first)])
      try house.bench.set("lamp/brightness", .number(80))
      #expect(try house.published(for: 1) == ["brightness 80"])
      try house.report(["brightness": 80])
      _ = try house.published(for: 1)
      house.lamp(isOnline: false)
      house.lamp(isOnline: true)
      try house.report(["power": true, "brightness": JSONValue(shortest: then)])
      #expect(try house.published(for: 1) == ["brightness 80"])
    }
  }

  @Test func `the events have the source restore`() throws {
    var house = try dark()
    house.lamp(isOnline: true)
    try house.report(["brightness": 254])
    var sources: Set<String> = []
    var host = HostState()
    host.room = 1
    while let effect = house.bench.core.nextEffect(at: house.bench.now, host: host) {
      if case .emit(let event) = effect, event.phase == .accepted {
        sources.insert(event.origin?.source ?? "mqtt")
      }
    }
    #expect(sources == ["restore"])
  }

  @Test func `a report just before it says that it is back counts, a late one does not`() throws {
    var house = try dark()
    try house.report(["brightness": 80])
    try house.report(["brightness": 254])
    #expect(try house.published().isEmpty)
    house.lamp(isOnline: true)
    #expect(try house.published(for: 1).contains("brightness 80"))

    var other = try dark()
    try other.report(["brightness": 80])
    other.lamp(isOnline: true)
    #expect(try other.published().isEmpty)
    try other.report(["brightness": 254])
    #expect(try other.published(for: 1).contains("brightness 80"))
  }

  @Test func `a lamp that was off is switched off, and nothing else`() throws {
    var house = try dark { try $0.set("power", .boolean(false)) }
    house.lamp(isOnline: true)
    try house.report(["power": true, "brightness": 254])
    #expect(try house.published() == ["power false"])

    var same = try dark { try $0.set("power", .boolean(false)) }
    same.lamp(isOnline: true)
    try same.report(["power": false, "brightness": 254])
    #expect(try same.published().isEmpty)
  }

  @Test func `what excludes each other is not sent together`() throws {
    var house = try dark { try $0.set("hue", .number(120)) }
    house.lamp(isOnline: true)
    try house.report(["power": true, "brightness": 80, "warmth": 200, "hue": 0])
    #expect(try house.published() == ["hue 120"])
  }

  @Test func `a newer change wins`() throws {
    for isAway in [true, false] {
      var house = try dark()
      if isAway { try house.bench.set("lamp/brightness", .number(30)) }
      house.lamp(isOnline: true)
      if !isAway { try house.bench.set("lamp/brightness", .number(30)) }
      try house.report(["power": true, "brightness": 254])
      #expect(try house.published() == ["brightness 30"])
    }
  }

  @Test func `a hand at the lamp after its return wins`() throws {
    var house = try dark()
    house.lamp(isOnline: true)
    try house.report(["power": true, "brightness": 80])
    #expect(try house.published().isEmpty)
    try house.report(["brightness": 20])
    #expect(try house.published(for: 10).isEmpty)
    // The way of a hand to a key that was not reported yet.
    try house.report(["hue": 40])
    #expect(try house.published(for: 10).isEmpty)
  }

  @Test func `a report a minute later is that of a hand`() throws {
    var house = try dark()
    house.lamp(isOnline: true)
    _ = try house.published(for: 61)
    try house.report(["brightness": 254])
    #expect(try house.published().isEmpty)
  }

  @Test func `with its bridge or the broker it gets nothing`() throws {
    var bridged = try dark()
    bridged.bridge(isOnline: false)
    bridged.bridge(isOnline: true)
    bridged.lamp(isOnline: true)
    try bridged.report(["brightness": 254])
    #expect(try bridged.published().isEmpty)

    var behind = House()
    try behind.report(["power": true, "brightness": 254])
    try behind.set("brightness", .number(80))
    behind.bridge(isOnline: false)
    behind.lamp(isOnline: false)
    behind.lamp(isOnline: true)
    behind.bridge(isOnline: true)
    try behind.report(["brightness": 254])
    #expect(try behind.published().isEmpty)

    var lost = try dark()
    lost.bench.loseAll()
    lost.lamp(isOnline: true)
    try lost.report(["brightness": 254])
    #expect(try lost.published().isEmpty)
  }

  @Test func `one that says once more that it is away returns by itself`() throws {
    for isBridge in [true, false] {
      var house = try dark()
      if isBridge {
        house.bridge(isOnline: false)
        house.bridge(isOnline: true)
      } else {
        house.bench.loseAll()
      }
      house.lamp(isOnline: false)
      house.lamp(isOnline: true)
      try house.report(["brightness": 254])
      #expect(try house.published(for: 1).contains("brightness 80"))
    }
  }

  @Test func `what was not known to be online has lost nothing`() throws {
    var house = House()
    house.bench.loseAll()
    try house.report(["power": true, "brightness": 80])
    house.lamp(isOnline: false)
    house.lamp(isOnline: true)
    try house.report(["brightness": 254])
    #expect(try house.published().isEmpty)
  }

  @Test func `one that comes and goes gets what it had before`() throws {
    var house = try dark()
    for _ in 0..<3 {
      house.lamp(isOnline: true)
      house.lamp(isOnline: false)
    }
    house.lamp(isOnline: true)
    try house.report(["brightness": 254])
    #expect(try house.published(for: 1).contains("brightness 80"))
  }

  @Test func `properties without it and urgent values get nothing`() throws {
    var house = House(restore: ["power"])
    try house.report(["power": true, "brightness": 80, "alarm": "on"])
    house.lamp(isOnline: false)
    house.lamp(isOnline: true)
    try house.report(["power": true, "brightness": 254, "alarm": "off"])
    #expect(try house.published().isEmpty)
  }

  @Test func `a command that was not confirmed is not what it had`() throws {
    var house = House()
    try house.report(["power": true, "brightness": 254])
    try house.bench.set("lamp/brightness", .number(80))
    #expect(try house.published(for: 1) == ["brightness 80"])
    house.lamp(isOnline: false)
    _ = try house.published(for: 60)
    house.lamp(isOnline: true)
    try house.report(["brightness": 200])
    #expect(try !house.published().contains("brightness 254"))
  }

  @Test func `the topic beside its own is the device's, one at the top is a bridge's`() {
    func isOwn(
      _ topic: String,
      command: String,
      state: String? = nil,
      isShared: Bool = false,
      isBelow: Bool = false
    ) -> Bool {
      var property = Property(
        id: "power",
        kind: .boolean,
        policy: Policy(delay: .zero),
        command: .init(topic: command, payload: PayloadTemplate("$value"))
      )
      property.states = state.map { [StateSource(topic: $0, value: .whole)] } ?? []
      let device = Device(id: "d", name: "d", properties: [property])
      let source = AvailabilitySource(
        topic: topic,
        value: .whole,
        online: "1",
        offline: "0",
        isBelowDevice: isBelow
      )
      return device.isOwn(source, isShared: isShared)
    }
    #expect(isOwn("zigbee2mqtt/lamp/availability", command: "zigbee2mqtt/lamp/set"))
    #expect(isOwn("zigbee2mqtt/a/lamp/availability", command: "zigbee2mqtt/a/lamp/set"))
    #expect(!isOwn("zigbee2mqtt/bridge/state", command: "zigbee2mqtt/lamp/set"))
    #expect(isOwn("tele/plug/LWT", command: "cmnd/plug/POWER"))
    #expect(isOwn("house/plug/tele/LWT", command: "house/plug/cmnd/POWER"))
    #expect(isOwn("shellies/x/online", command: "shellies/x/relay/0/command", isShared: true))
    #expect(isOwn("node/status", command: "node/switch/a/command"))
    #expect(isOwn("node/status", command: "node/switch/a/command", isShared: true, isBelow: true))
    #expect(!isOwn("hue/connected", command: "hue/set/lamp", isShared: true))
    #expect(isOwn("x/out/online", command: "y/in", state: "x/out/state"))
    #expect(!isOwn("online", command: "online/set"))
  }
}

/// A lamp whose power comes and goes, in a house where everything else happens too.
///
/// It knows nothing of how the gateway decides: it remembers what the lamp had confirmed, and what
/// has happened since.
@Suite struct PowerLossTests {
  private struct World: ~Copyable {
    var bench: CoreBench
    var random: SeededGenerator
    let key: KeyIndex
    /// What the lamp is set to; `nil` without power.
    var level: Double? = 100
    /// What it had when its power went, if it may get that back.
    var had: Double?
    var isBridgeUp = true
    /// Whether it was heard since it came back.
    var isHeard = true
    var restored = 0
    var returns = 0
    var problems: [String] = []

    init(seed: UInt64) throws {
      var property = CoreBench.number("level", to: 254)
      property.states = [StateSource(topic: "z/lamp/level", value: .whole)]
      property.command = .init(topic: "z/lamp/set", payload: PayloadTemplate("$value"))
      property.confirm = Confirmation(within: .seconds(2), retries: 1)
      property.restore = true
      var device = Device(id: "lamp", name: "lamp", properties: [property])
      device.availability = ["z/bridge/state", "z/lamp/availability"].map {
        AvailabilitySource(topic: $0, value: .whole, online: "online", offline: "offline")
      }
      bench = CoreBench(isJournalled: false, devices: [device])
      random = SeededGenerator(seed: seed)
      key = try bench.core.registry.index(of: "lamp/level")
      said(bridge: true)
      said(lamp: true)
      report()
    }

    private mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }

    mutating func said(bridge isUp: Bool) {
      _ = bench.core.availability(ofDevice: 0, source: 0, isOnline: isUp, at: bench.now)
    }

    mutating func said(lamp isUp: Bool) {
      _ = bench.core.availability(ofDevice: 0, source: 1, isOnline: isUp, at: bench.now)
    }

    mutating func report() {
      guard let level, isBridgeUp else { return }
      isHeard = true
      bench.core.reported(key, JSONValue(shortest: level), source: 0, at: bench.now)
    }

    /// Lets time pass; the lamp takes what is sent.
    mutating func pass(_ milliseconds: Int) {
      for _ in 0..<max(1, milliseconds / 50) {
        var host = HostState()
        host.room = 1
        while let effect = bench.core.nextEffect(at: bench.now, host: host) {
          if case .emit(let event) = effect, event.phase == .accepted,
            event.origin?.source == ChangeOrigin.restore
          {
            check(event.value)
          }
          guard case .publish(let publish) = effect else { continue }
          bench.core.commandFinished(publish.token, .acknowledged, at: bench.now)
          let value = Double(String(decoding: publish.payload, as: UTF8.self))
          guard level != nil, isBridgeUp else { continue }
          level = value
          report()
        }
        bench.pass(50)
      }
    }

    private mutating func check(_ value: Value?) {
      restored += 1
      if value != had.map({ .number($0) }) { problems.append("gets \(value as Value?)") }
      had = nil
    }

    mutating func step() throws {
      switch below(9) {
      case 0, 1:
        try bench.core.change(.set(.number(Double(below(255)))), of: key, at: bench.now)
        had = nil
      case 2 where level != nil:
        // Somebody at the lamp.
        level = Double(below(255))
        had = nil
        report()
      case 3 where level != nil:
        pass(10_000)
        guard level != nil, isBridgeUp else { return }
        had = level
        level = nil
        pass(below(3000))
        said(lamp: false)
      case 4 where level == nil && isBridgeUp: comeBack()
      case 5 where isBridgeUp && below(2) == 0:
        isBridgeUp = false
        said(bridge: false)
      case 6 where !isBridgeUp:
        isBridgeUp = true
        said(bridge: true)
        said(lamp: level != nil)
        report()
      case 7 where below(3) == 0:
        bench.loseAll()
        said(bridge: isBridgeUp)
        said(lamp: level != nil)
        report()
      default: pass(below(4000))
      }
    }

    private mutating func comeBack() {
      level = 254
      returns += 1
      isHeard = false
      let wanted = had
      let before = restored
      if below(2) == 0 {
        report()
        pass(below(200))
        said(lamp: true)
      } else {
        said(lamp: true)
        pass(below(2000))
      }
      report()
      pass(3000)
      let isDue = wanted.map { abs($0 - 254) > 0.5 } ?? false
      if isDue != (restored > before) {
        problems.append("had \(wanted ?? -1), restored \(restored - before) times")
      }
      had = nil
    }
  }

  @Test func `it gets back what it had, and nobody is fought`() throws {
    var (restored, returns) = (0, 0)
    for seed in 1...400 as ClosedRange<UInt64> {
      var world = try World(seed: seed)
      for _ in 0..<120 where world.problems.isEmpty { try world.step() }
      #expect(world.problems.isEmpty, "seed \(seed): \(world.problems)")
      restored += world.restored
      returns += world.returns
    }
    #expect(restored > 500)
    #expect(returns > 2 * restored / 3)
  }
}

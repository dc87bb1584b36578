// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Routing
import Values

/// The devices of every run: each rule of the command machine is used by one of them.
enum House {
  /// The lanes' limits; tokens a second divide a second evenly.
  static let lanes: [String: LaneLimits] = [
    "bus": LaneLimits(rate: 5, burst: 2), "slow": LaneLimits(rate: 1, burst: 1),
    "mesh": LaneLimits(window: .init(start: 2, min: 2, max: 2)),
  ]

  /// The devices, with one of four sets of policies.
  static func devices(_ variant: UInt64) -> [Device] {
    var lamp = lamp
    lamp.properties[0].policy.delay = .milliseconds(variant.isMultiple(of: 2) ? 300 : 150)
    var siren = siren
    siren.properties[1].policy.delay = .milliseconds(variant / 2 % 2 == 0 ? 20 : 0)
    let row = (1...3).map { rowLamp($0) }
    let horns = (1...2).map { horn($0) }
    return [valve, light, blind, lamp, fan, siren] + row + horns
      + [group("row", of: row, variant), group("horns", of: horns, variant)]
  }

  /// Three lamps of one bridge, which merges what they get at one instant.
  private static func rowLamp(_ place: Int) -> Device {
    var level = number("level", confirm: Confirmation(within: .seconds(3), retries: 1))
    level.urgent = [.number(0)]
    var power = word("power", kind: .boolean, delay: 20)
    power.state = StateSource(topic: "row/state", value: .whole)
    power.confirm = Confirmation(within: .seconds(2))
    level.command = member("level", of: "row-\(place)")
    power.command = member("power", of: "row-\(place)")
    var lamp = device("row-\(place)", lane: "bus", [level, power])
    lamp.merge = true
    return lamp
  }

  /// What nothing confirms, in a lane with a window.
  private static func horn(_ number: Int) -> Device {
    let tone = word("tone", kind: .choice(["low", "mid", "high"]), delay: 20)
    let button = word("blow", kind: .action(["blow"]), delay: 0)
    return device("horn-\(number)", lane: "mesh", [tone, button], sources: 0)
  }

  /// A group, in three of four variants with a topic of its own.
  private static func group(_ id: String, of members: [Device], _ variant: UInt64) -> Device {
    var group = Device(id: id, name: id, properties: DeviceGroup.sharedProperties(of: members))
    group.group = DeviceGroup(members: members.map(\.id))
    group.merge = members.allSatisfy(\.merge)
    for (place, property) in members[0].properties.enumerated() {
      group.properties[place].command = property.command
      group.properties[place].command.topic = variant % 4 == 3 ? "" : "\(id)/all/set"
    }
    return group
  }

  /// The brokers beside the gateway's own.
  static let brokers = ["far"]

  /// Payloads that one of the routes passes; so many that those of one burst differ.
  static let passedPayloads = (0..<256).map { "STOP \($0)" }

  /// Payloads that one of the routes sends at once, in place of what waits.
  static let urgentPayloads = (0..<64).map { "HALT \($0)" }

  static var routes: [RouteConfiguration] {
    let fast = RouteConfiguration(
      from: .init(topic: "fast/+"),
      to: .init(broker: "far", topic: "slow/+"),
      policy: Policy(delay: .milliseconds(300), maxWait: .seconds(2))
    )
    let raw = RouteConfiguration(
      from: .init(broker: "far", topic: "raw/+"),
      to: .init(topic: "copy/+"),
      policy: nil
    )
    var cover = RouteConfiguration(
      from: .init(topic: "cover/+"),
      to: .init(broker: "far", topic: "blind/+"),
      policy: Policy(delay: .milliseconds(500))
    )
    cover.urgent = urgentPayloads.map { .payload(Array($0.utf8)) }
    cover.pass = passedPayloads.map { .payload(Array($0.utf8)) }
    var dial = RouteConfiguration(
      from: .init(broker: "far", topic: "dial/+"),
      to: .init(topic: "lamp/+"),
      policy: Policy(delay: .milliseconds(200), maxWait: .seconds(1))
    )
    dial.mergesJSON = true
    dial.pass = [JSONPointer("/step")].compactMap { $0.map(MessagePattern.member) }
    var lamps = RouteConfiguration(
      from: .init(topic: "z2m/+/set"),
      to: .init(broker: "far", topic: "direct/+/set"),
      policy: Policy(delay: .milliseconds(300), maxWait: .seconds(2))
    )
    lamps.mergesJSON = true
    return [fast, raw, cover, dial, lamps]
  }

  /// A topic that a route matches.
  struct RoutedTopic {
    var name: String
    /// The broker it is on.
    var broker: Int
    var output: String
    /// The broker that the route leads to.
    var target: Int
    /// The quiet period; `nil` for a route that forwards everything.
    var delay: Duration?
    var hasMaxWait = false
    /// Whether objects merge, and one with the member `step` is passed.
    var merges = false
    /// Whether ``passedPayloads`` are passed, and ``urgentPayloads`` urgent.
    var passes = false

    var isDebounced: Bool { delay != nil }
  }

  static let routedTopics: [RoutedTopic] = ["a", "b"].flatMap { name in
    [
      RoutedTopic(
        name: "fast/\(name)",
        broker: 0,
        output: "slow/\(name)",
        target: 1,
        delay: .milliseconds(300),
        hasMaxWait: true
      ),
      RoutedTopic(name: "raw/\(name)", broker: 1, output: "copy/\(name)", target: 0),
      RoutedTopic(
        name: "cover/\(name)",
        broker: 0,
        output: "blind/\(name)",
        target: 1,
        delay: .milliseconds(500),
        passes: true
      ),
      RoutedTopic(
        name: "dial/\(name)",
        broker: 1,
        output: "lamp/\(name)",
        target: 0,
        delay: .milliseconds(200),
        hasMaxWait: true,
        merges: true
      ),
    ]
  }

  private static var valve: Device {
    var level = number("level", confirm: Confirmation(within: .seconds(3), retries: 2))
    level.state?.get = StateRequest(topic: "level/get", payload: [])
    var mode = word("mode", kind: .choice(["off", "heat", "auto"]), delay: 20)
    mode.state = StateSource(topic: "mode/state", value: .whole)
    mode.confirm = Confirmation(within: .seconds(2), retries: 1)
    mode.policy.minInterval = .milliseconds(700)
    mode.urgent = [.text("off")]
    mode.ends = ["level"]
    return device("valve", lane: "bus", [level, mode])
  }

  private static var light: Device {
    var brightness = number("brightness", confirm: Confirmation())
    var warmth = number("warmth", confirm: Confirmation())
    warmth.excludes = ["hue"]
    var hue = number("hue", confirm: Confirmation(retries: 1))
    var power = word("power", kind: .boolean, delay: 20)
    power.state = StateSource(topic: "power/state", value: .whole)
    power.confirm = Confirmation(within: .seconds(1))
    brightness.command = member("brightness")
    warmth.command = member("warmth")
    hue.command = member("hue")
    power.command = member("power")
    var light = device("light", lane: "bus", [brightness, warmth, hue, power])
    for place in [0, 3] {
      let members = [JSONValue.Member(light.properties[place].id, .string(""))]
      light.properties[place].state?.get = StateRequest(topic: "light/get", members: members)
    }
    light.merge = true
    light.options = ["transition"]
    return light
  }

  private static var blind: Device {
    var position = number("position", confirm: nil)
    position.policy = .live
    position.ttl = .seconds(3)
    var button = word("button", kind: .action(["STOP", "OPEN"]), delay: 0)
    button.urgent = [.text("STOP")]
    button.ends = ["position"]
    return device("blind", lane: "mesh", [position, button])
  }

  private static var lamp: Device {
    var level = number("level", confirm: Confirmation(within: .seconds(2)))
    level.policy = Policy(delay: .milliseconds(300), maxWait: .seconds(1))
    level.always = true
    var lamp = device("lamp", lane: nil, [level])
    lamp.availability.append(availability(of: "bridge"))
    return lamp
  }

  private static var fan: Device {
    var speed = number("speed", confirm: Confirmation(within: .seconds(2), retries: 1))
    speed.policy = Policy(delay: .milliseconds(100), maxWait: .milliseconds(250), leading: true)
    speed.ttl = .seconds(15)
    speed.urgent = [.number(0)]
    speed.ends = ["swing"]
    var swing = number("swing", confirm: Confirmation(within: .seconds(5)))
    swing.ttl = .seconds(5)
    return device("fan", lane: "slow", [speed, swing], sources: 0)
  }

  private static var siren: Device {
    let tone = word("tone", kind: .choice(["low", "mid", "high"]), delay: 0)
    // It reports its state, but nothing waits for that.
    var armed = word("armed", kind: .boolean, delay: 20)
    armed.state = StateSource(
      topic: "armed/state",
      value: .whole,
      get: StateRequest(topic: "armed/get", payload: [])
    )
    return device("siren", lane: "mesh", [tone, armed])
  }

  private static func device(
    _ id: String,
    lane: String?,
    _ properties: [Property],
    sources: Int = 1
  ) -> Device {
    var device = Device(id: id, name: id, properties: properties)
    device.lane = lane
    device.availability = (0..<sources).map { _ in availability(of: id) }
    return device
  }

  private static func availability(of id: String) -> AvailabilitySource {
    AvailabilitySource(
      topic: "\(id)/status",
      value: .whole,
      online: "online",
      offline: "offline"
    )
  }

  private static func member(_ name: String, of device: String = "light") -> CommandEndpoint {
    CommandEndpoint(
      topic: "\(device)/set",
      payload: PayloadTemplate(.object([.init(name, .string(PayloadTemplate.placeholder))]))
    )
  }

  /// 0 to 100 in steps of 1; has a state topic if it can be confirmed.
  private static func number(_ id: String, confirm: Confirmation?) -> Property {
    var property = Property(
      id: id,
      kind: .number(NumberRule(range: 0...100, step: 1)),
      policy: Policy(delay: .milliseconds(300)),
      command: CommandEndpoint(topic: "\(id)/set", payload: PayloadTemplate("$value"))
    )
    if let confirm {
      property.state = StateSource(topic: "\(id)/state", value: .whole)
      property.confirm = confirm
    }
    return property
  }

  private static func word(_ id: String, kind: ValueKind, delay: Int) -> Property {
    Property(
      id: id,
      kind: kind,
      policy: Policy(delay: .milliseconds(delay)),
      command: CommandEndpoint(topic: "\(id)/set", payload: PayloadTemplate("$value"))
    )
  }
}

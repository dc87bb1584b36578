// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Values

/// The devices of a household: lamps, shades, a valve, a dimmer and a relay, and groups of some.
enum Household {
  /// The physical kinds of devices.
  enum Form {
    /// A lamp that any brightness turns on.
    case lamp
    /// A lamp that obeys other properties only while it is on, or told so in the same message.
    case statefulLamp
    case shade
    case valve
    case dimmer
    case relay
  }

  /// Which properties imply another one, by their keys; see ``definition(of:)``.
  static let implies: [String: String] = {
    var found = ["stateful-lamp/brightness": "stateful-lamp/power"]
    found["stateful-lamp/warmth"] = "stateful-lamp/power"
    found["stateful-lamp/color"] = "stateful-lamp/power"
    for lamp in ["lamp"] + rowIDs { found["\(lamp)/brightness"] = "\(lamp)/power" }
    return found
  }()

  static let rowIDs = ["row-1", "row-2", "row-3"]
  static let shadeIDs = ["shade-1", "shade-2", "shade-3"]

  static func form(of device: String) -> Form {
    switch device {
    case "stateful-lamp": .statefulLamp
    case "valve": .valve
    case "dimmer": .dimmer
    case "relay": .relay
    case let id where shadeIDs.contains(id): .shade
    default: .lamp
    }
  }

  static let lanes: [String: LaneLimits] = [
    "radio": LaneLimits(window: .init(start: 3, min: 1, max: 8)),
    "bus": LaneLimits(rate: 5, burst: 2),
  ]

  /// The devices; each `edition` of their files has other quiet periods.
  static func devices(_ traits: HouseholdTraits, edition: Int = 0) -> [Device] {
    var devices = originals(traits)
    for place in devices.indices where edition > 0 {
      for number in devices[place].properties.indices {
        devices[place].properties[number].policy.delay *= 1 + edition
      }
    }
    return devices
  }

  private static func originals(_ traits: HouseholdTraits) -> [Device] {
    let row = rowIDs.map { lamp($0, hasColor: false) }
    let shades = shadeIDs.map { shade($0) }
    let devices =
      [lamp("lamp", hasColor: true), lamp("stateful-lamp", hasColor: true)] + row + shades
      + [valve, dimmer, relay]
    return (traits.restores ? devices.map(restoring) : devices)
      + [group("row", of: row, hasTopic: traits.groupsHaveTopics)]
      + [group("shades", of: shades, hasTopic: false)]
  }

  /// The device with `restore`, as far as that has a meaning.
  private static func restoring(_ device: Device) -> Device {
    var device = device
    for place in device.properties.indices
    where !device.properties[place].isAction && form(of: device.id) != .shade {
      device.properties[place].restore = true
    }
    return device
  }

  // MARK: - Lamps

  private static func lamp(_ id: String, hasColor: Bool) -> Device {
    var power = property("power", of: id, .boolean, delay: 20)
    power.wire.on = "ON"
    power.wire.off = "OFF"
    let range = 0.0...254.0
    let brightness = property("brightness", of: id, number(range), delay: 300, maxWait: 2000)
    var properties = [power, brightness]
    if hasColor {
      var warmth = property("warmth", of: id, number(150...500), delay: 300, maxWait: 2000)
      warmth.excludes = ["color"]
      var color = property("color", of: id, .color, delay: 300, maxWait: 2000)
      color.excludes = ["warmth"]
      properties += [warmth, color]
    }
    for place in properties.indices where implies["\(id)/\(properties[place].id)"] != nil {
      let isCarried = form(of: id) == .statefulLamp
      properties[place] = implying(properties[place], power, isCarried: isCarried)
    }
    var lamp = device(id, lane: "radio", properties)
    lamp.merge = true
    lamp.options = ["transition"]
    return lamp
  }

  /// A property that implies `power`, whose value its message carries where the lamp asks for that.
  private static func implying(
    _ property: Property,
    _ power: Property,
    isCarried: Bool
  ) -> Property {
    var property = property
    let implication = Implication(property: "power", value: .boolean(true))
    property.implies = [implication]
    guard isCarried else { return property }
    let template = PayloadTemplate(
      .object([
        .init("power", .string(PayloadTemplate.implied("power"))),
        .init(property.id, .string(PayloadTemplate.placeholder)),
      ])
    )
    property.command.payload = template.carrying([
      "power": .init(implication, of: property, for: power)
    ])
    return property
  }

  // MARK: - Others

  private static func shade(_ id: String) -> Device {
    var position = property("position", of: id, number(0...100), delay: 500)
    position.confirm = Confirmation(within: .seconds(60), tolerance: 2)
    var command = property("command", of: id, .action(["OPEN", "CLOSE", "STOP"]), delay: 0)
    command.urgent = [.text("OPEN"), .text("CLOSE"), .text("STOP")]
    command.ends = ["position"]
    let tilt = property("tilt", of: id, number(0...100), delay: 500)
    return device(id, lane: "bus", [position, command, tilt])
  }

  private static var valve: Device {
    var setpoint = property("setpoint", of: "valve", number(5...30), delay: 800)
    setpoint.confirm = Confirmation(within: .seconds(20))
    var mode = property("mode", of: "valve", .choice(["off", "heat", "auto"]), delay: 20)
    mode.urgent = [.text("off")]
    mode.ends = ["setpoint"]
    mode.confirm = Confirmation(within: .seconds(20), retries: 1)
    var valve = device("valve", lane: "radio", [setpoint, mode])
    valve.merge = true
    return valve
  }

  private static var dimmer: Device {
    var level = property("level", of: "dimmer", number(0...100), delay: 200, maxWait: 200)
    level.policy = .live
    level.confirm = Confirmation(within: .seconds(5), retries: 1)
    return device("dimmer", lane: nil, [level])
  }

  private static var relay: Device {
    let power = property("power", of: "relay", .boolean, delay: 20)
    return device("relay", lane: nil, [power])
  }

  private static func group(_ id: String, of members: [Device], hasTopic: Bool) -> Device {
    var group = Device(id: id, name: id, properties: DeviceGroup.sharedProperties(of: members))
    group.group = DeviceGroup(members: members.map(\.id))
    group.merge = members.allSatisfy(\.merge)
    for (place, property) in group.properties.enumerated() {
      guard let own = members[0].properties.first(where: { $0.id == property.id }) else { continue }
      group.properties[place].command = own.command
      group.properties[place].command.topic = hasTopic ? "\(id)/set" : ""
      group.properties[place].wire = own.wire
    }
    return group
  }

  private static func device(_ id: String, lane: String?, _ properties: [Property]) -> Device {
    var device = Device(id: id, name: id, properties: properties)
    device.lane = lane
    device.availability = [
      AvailabilitySource(
        topic: "\(id)/status",
        value: .whole,
        online: "online",
        offline: "offline"
      )
    ]
    return device
  }

  private static func number(_ range: ClosedRange<Double>) -> ValueKind {
    .integer(NumberRule(range: range, step: 1))
  }

  /// A property whose command is a member of a JSON object on the device's topic.
  private static func property(
    _ id: String,
    of device: String,
    _ kind: ValueKind,
    delay: Int,
    maxWait: Int? = nil
  ) -> Property {
    var property = Property(
      id: id,
      kind: kind,
      policy: Policy(
        delay: .milliseconds(delay),
        maxWait: maxWait.map { .milliseconds($0) }
      ),
      command: CommandEndpoint(
        topic: "\(device)/set",
        payload: PayloadTemplate(.object([.init(id, .string(PayloadTemplate.placeholder))]))
      )
    )
    if !property.isAction {
      property.state = StateSource(topic: "\(device)/\(id)", value: .whole)
      property.confirm = Confirmation(within: .seconds(10), retries: 1)
    }
    return property
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
package import LastOut

/// A color lamp behind Zigbee2MQTT: JSON commands, `transition`, retained state, availability.
///
/// A command takes ``radioDelay`` to reach the lamp. During a transition the lamp reports its state
/// every ``reportInterval`` and once at the end.
package struct ZigbeeLamp: SimulatedDevice {
  /// The time that the mesh needs for one command.
  package static let radioDelay = Duration.milliseconds(40)
  package static let reportInterval = Duration.milliseconds(250)

  package let name: String
  package private(set) var isOn = false
  package private(set) var colorTemperature = 370.0
  /// The last color, in the form in which it was set; `nil` while the lamp shows white.
  package private(set) var color: JSONValue?
  package private(set) var tally = CommandTally()

  /// From 0 to 254.
  private var brightness: Ramp
  /// Commands in flight, oldest first.
  private var inFlight: [(arrival: Moment, command: JSONValue)] = []
  private var nextReport: Moment?

  package init(name: String, brightness: Double = 100, isOn: Bool = true) {
    self.name = name
    self.isOn = isOn
    self.brightness = Ramp(resting: brightness, at: .zero)
  }

  private var topic: String { "zigbee2mqtt/\(name)" }

  package var subscriptions: [String] { ["\(topic)/set", "\(topic)/set/+", "\(topic)/get"] }

  package var nextWake: Moment? { [inFlight.first?.arrival, nextReport].compactMap(\.self).min() }

  /// The brightness at `now`, from 0 to 254.
  package func brightness(at now: Moment) -> Int { Int(brightness.value(at: now).rounded()) }

  package var will: [DeviceMessage] { [.zigbeeAvailability(topic, isOnline: false)] }

  package mutating func start(at now: Moment) -> [DeviceMessage] {
    [
      DeviceMessage(
        topic: "zigbee2mqtt/bridge/state",
        json: .object(["state": "online"]),
        retain: true
      ),
      .zigbeeAvailability(topic, isOnline: true),
      report(at: now),
    ]
  }

  package mutating func receive(_ message: DeviceMessage, at now: Moment) -> [DeviceMessage] {
    if message.topic == "\(topic)/get" { return [report(at: now)] }
    tally.received += 1
    guard let command = Self.command(message) else {
      tally.refused += 1
      return [
        DeviceMessage(
          topic: "zigbee2mqtt/bridge/logging",
          json: .object([
            "level": "error", "message": .string("Invalid payload for '\(name)', skipping..."),
          ])
        )
      ]
    }
    inFlight.append((now.advanced(by: Self.radioDelay), command))
    return []
  }

  package mutating func wake(at now: Moment) -> [DeviceMessage] {
    var messages: [DeviceMessage] = []
    while let next = inFlight.first, next.arrival <= now {
      inFlight.removeFirst()
      apply(next.command, at: next.arrival)
      messages.append(report(at: next.arrival))
    }
    if let due = nextReport, due <= now { messages.append(report(at: now)) }
    return messages
  }

  /// Converts a payload to the object form; `nil` if Zigbee2MQTT does not accept it.
  private static func command(_ message: DeviceMessage) -> JSONValue? {
    if message.topic.hasSuffix("/set") {
      guard ["ON", "OFF", "TOGGLE"].contains(message.text.uppercased()) else {
        return message.object
      }
      return .object(["state": .string(message.text)])
    }
    guard let attribute = message.topic.split(separator: "/").last else { return nil }
    return .object([JSONValue.Member(String(attribute), message.document)])
  }

  private mutating func apply(_ command: JSONValue, at now: Moment) {
    let transition = Duration.milliseconds(
      Int64(max(0, min(3600, command["transition"]?.double ?? 0)) * 1000)
    )
    if let asked = command["brightness"]?.double {
      let target = min(max(asked.rounded(), 0), 254)
      isOn = target > 0
      let start = brightness.value(at: now)
      brightness = Ramp(from: start, to: target, start: now, duration: transition)
    }
    switch command["state"]?.string?.uppercased() {
    case "ON": isOn = true
    case "OFF": isOn = false
    case "TOGGLE": isOn.toggle()
    case nil, .some: break
    }
    if let mired = command["color_temp"]?.double {
      colorTemperature = mired
      color = nil
    }
    if let asked = command["color"] { color = asked }
  }

  /// Creates the retained state and schedules the next one.
  private mutating func report(at now: Moment) -> DeviceMessage {
    let isMoving = brightness.isMoving(at: now)
    nextReport = isMoving ? min(now.advanced(by: Self.reportInterval), brightness.end) : nil
    var members: [JSONValue.Member] = [
      .init("state", isOn ? "ON" : "OFF"),
      .init("brightness", .integer(Int64(brightness(at: now)))),
      .init("color_mode", color == nil ? "color_temp" : "xy"),
      .init("color_temp", .number(colorTemperature)),
    ]
    if let color { members.append(.init("color", color)) }
    return DeviceMessage(topic: topic, json: .object(members), retain: true)
  }
}

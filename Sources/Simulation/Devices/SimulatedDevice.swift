// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import JSON
package import LastOut
import MQTT
internal import Values

/// A device as a value: messages and times go in, messages and the next wake-up come out.
///
/// After any call, read ``nextWake`` and call ``wake(at:)`` at that time. Time must not decrease.
package protocol SimulatedDevice: Sendable {
  /// The topic filters that the device subscribes to.
  var subscriptions: [String] { get }

  /// The time of the next call of ``wake(at:)``; `nil` while nothing changes.
  var nextWake: Moment? { get }

  /// The counts of received, dropped and refused commands.
  var tally: CommandTally { get }

  /// The device's last will.
  var will: [DeviceMessage] { get }

  /// Starts the device and returns its first messages.
  mutating func start(at now: Moment) -> [DeviceMessage]

  /// Handles one message; replies to invalid ones as the real device does.
  mutating func receive(_ message: DeviceMessage, at now: Moment) -> [DeviceMessage]

  /// Advances the device to `now`.
  mutating func wake(at now: Moment) -> [DeviceMessage]
}

extension SimulatedDevice {
  /// Whether the device subscribes to `topic`.
  package func listens(to topic: String) -> Bool {
    subscriptions.contains { Topic.matches(filter: $0, name: topic) }
  }
}

/// The numbers of commands that a device received, dropped and refused.
package struct CommandTally: Hashable, Sendable {
  package var received = 0
  /// Commands that were lost because the device was busy.
  package var dropped = 0
  /// Commands that were invalid.
  package var refused = 0

  package init(received: Int = 0, dropped: Int = 0, refused: Int = 0) {
    self.received = received
    self.dropped = dropped
    self.refused = refused
  }
}

/// A message that a simulated device publishes.
package struct DeviceMessage: Hashable, Sendable {
  package var topic: String
  package var payload: [UInt8]
  package var retain: Bool

  package init(topic: String, payload: [UInt8], retain: Bool = false) {
    self.topic = topic
    self.payload = payload
    self.retain = retain
  }

  package init(topic: String, text: String, retain: Bool = false) {
    self.init(topic: topic, payload: Array(text.utf8), retain: retain)
  }

  package init(topic: String, json: JSONValue, retain: Bool = false) {
    self.init(topic: topic, payload: JSONWriter.bytes(json), retain: retain)
  }

  /// The availability of a device behind Zigbee2MQTT.
  static func zigbeeAvailability(_ topic: String, isOnline: Bool) -> DeviceMessage {
    DeviceMessage(
      topic: "\(topic)/availability",
      json: .object(["state": isOnline ? "online" : "offline"]),
      retain: true
    )
  }

  /// The payload as text.
  package var text: String { String(decoding: payload, as: UTF8.self) }

  /// The payload as JSON, or as a text if it is none.
  var document: JSONValue { (try? JSONParser.parse(payload.span)) ?? .string(text) }
}

/// A quantity that changes linearly from one value to another.
package struct Ramp: Hashable, Sendable {
  package let from: Double
  package let to: Double
  package let start: Moment
  package let duration: Duration

  package init(from: Double, to: Double, start: Moment, duration: Duration) {
    self.from = from
    self.to = to
    self.start = start
    self.duration = max(duration, .zero)
  }

  /// Creates a movement of which a distance of 100 takes `whole`.
  init(from: Double, to: Double, start: Moment, whole: Duration) {
    self.init(from: from, to: to, start: start, duration: whole * (abs(to - from) / 100))
  }

  /// Creates a constant value.
  package init(resting value: Double, at now: Moment) {
    self.init(from: value, to: value, start: now, duration: .zero)
  }

  package var end: Moment { start.advanced(by: duration) }

  package func isMoving(at now: Moment) -> Bool { now < end && from != to }

  /// The value at `now`, constant before the start and after the end.
  package func value(at now: Moment) -> Double {
    guard now < end else { return to }
    guard now > start else { return from }
    return from + (to - from) * (start.duration(to: now) / duration)
  }
}

/// A Tasmota color light: `cmnd` in, `stat` and `tele` out, last will on `LWT`.
///
/// An empty payload is a query, as in the firmware. `cmnd/<topic>/json` accepts several commands in
/// one message, each of which has a reply of its own. Setting `Dimmer` above 0 turns the light on.
package struct TasmotaDimmer: SimulatedDevice {
  package static let replyDelay = Duration.milliseconds(15)

  package let name: String
  package private(set) var isOn = true
  /// From 0 to 100.
  package private(set) var dimmer = 50.0
  /// Hue, saturation: the first two parts of `HSBColor`.
  package private(set) var hue = 30.0
  package private(set) var saturation = 60.0
  package private(set) var colorTemperature: Double?
  package private(set) var tally = CommandTally()

  /// Replies that are not sent yet, oldest first.
  private var replies: [(due: Moment, messages: [DeviceMessage])] = []

  /// Whether `tele/<topic>/STATE` follows each `RESULT`, as with SetOption59.
  private let reportsState: Bool

  package init(name: String, reportsState: Bool = false) {
    self.name = name
    self.reportsState = reportsState
  }

  package var subscriptions: [String] { ["cmnd/\(name)/+"] }

  package var nextWake: Moment? { replies.first?.due }

  package var will: [DeviceMessage] {
    [DeviceMessage(topic: "tele/\(name)/LWT", text: "Offline", retain: true)]
  }

  package mutating func start(at now: Moment) -> [DeviceMessage] {
    [
      DeviceMessage(topic: "tele/\(name)/LWT", text: "Online", retain: true),
      DeviceMessage(topic: "tele/\(name)/STATE", json: state),
    ]
  }

  package mutating func receive(_ message: DeviceMessage, at now: Moment) -> [DeviceMessage] {
    guard let command = message.topic.split(separator: "/").last?.lowercased() else { return [] }
    var messages = answer(to: command, message.text)
    if reportsState, !message.payload.isEmpty {
      messages.append(DeviceMessage(topic: "tele/\(name)/STATE", json: state))
    }
    replies.append((now.advanced(by: Self.replyDelay), messages))
    return []
  }

  package mutating func wake(at now: Moment) -> [DeviceMessage] {
    var messages: [DeviceMessage] = []
    while let next = replies.first, next.due <= now {
      replies.removeFirst()
      messages += next.messages
    }
    return messages
  }

  private mutating func answer(to command: String, _ text: String) -> [DeviceMessage] {
    if command == "state" { return [DeviceMessage(topic: "stat/\(name)/RESULT", json: state)] }
    if command == "json" { return apply(members: text) }
    guard !text.isEmpty else { return [result(of: command)] }
    tally.received += 1
    guard apply(command, text) else { return [refusal()] }
    return results(of: command)
  }

  private mutating func apply(members text: String) -> [DeviceMessage] {
    tally.received += 1
    guard case .object(let members)? = try? JSONParser.parse(text) else { return [refusal()] }
    var messages: [DeviceMessage] = []
    for member in members {
      let command = member.name.lowercased()
      let argument = member.value.string ?? JSONWriter.text(member.value)
      guard apply(command, argument) else { return messages + [refusal()] }
      messages += results(of: command)
    }
    return messages
  }

  /// Executes one command; `false` if the firmware does not accept it.
  private mutating func apply(_ command: String, _ argument: String) -> Bool {
    switch command {
    case "power", "power1": return setPower(argument.uppercased())
    case "dimmer":
      guard let value = dimmerValue(argument) else { return false }
      dimmer = min(max(value, 0), 100)
      isOn = dimmer > 0
    case "hsbcolor":
      let parts = argument.split(separator: ",").compactMap { Double($0) }
      guard parts.count == 3 else { return false }
      (hue, saturation, dimmer) = (parts[0], parts[1], parts[2])
      isOn = dimmer > 0
      colorTemperature = nil
    case "color2":
      guard let color = Color(hex: argument) ?? Color(wire: .string(argument), encoding: .commaRGB)
      else { return false }
      (hue, saturation) = (color.hsb.hue.rounded(), color.hsb.saturation.rounded())
      isOn = dimmer > 0
      colorTemperature = nil
    case "hsbcolor1":
      guard let value = Double(argument) else { return false }
      hue = value
    case "hsbcolor2":
      guard let value = Double(argument) else { return false }
      saturation = value
    case "ct":
      guard let value = Double(argument), (153...500).contains(value) else { return false }
      colorTemperature = value
    default: return false
    }
    return true
  }

  private mutating func setPower(_ word: String) -> Bool {
    switch word {
    case "ON", "1", "TRUE": isOn = true
    case "OFF", "0", "FALSE": isOn = false
    case "TOGGLE", "2": isOn.toggle()
    default: return false
    }
    return true
  }

  /// Reads `40`, or a relative value such as `+5` or `-`.
  private func dimmerValue(_ argument: String) -> Double? {
    switch argument {
    case "+": dimmer + 10
    case "-": dimmer - 10
    case _ where argument.hasPrefix("+") || argument.hasPrefix("-"):
      Double(argument).map { dimmer + $0 }
    default: Double(argument)
    }
  }

  private mutating func refusal() -> DeviceMessage {
    tally.refused += 1
    return DeviceMessage(
      topic: "stat/\(name)/RESULT",
      json: .object(["Command": "Unknown"])
    )
  }

  private var colorText: String {
    [hue, saturation, dimmer].map { JSONWriter.text(.number($0)) }.joined(separator: ",")
  }

  private var state: JSONValue {
    var members: [JSONValue.Member] = [
      .init("POWER", isOn ? "ON" : "OFF"), .init("Dimmer", .number(dimmer)),
      .init("HSBColor", .string(colorText)),
    ]
    if let colorTemperature { members.append(.init("CT", .number(colorTemperature))) }
    return .object(members)
  }

  /// Tasmota's RESULT, which has the light's whole state after a light command.
  private func result(of command: String) -> DeviceMessage {
    let isPower = command.hasPrefix("power")
    return DeviceMessage(
      topic: "stat/\(name)/RESULT",
      json: isPower ? .object(["POWER": isOn ? "ON" : "OFF"]) : state
    )
  }

  /// All that follows a command; a switch is reported on POWER too.
  private func results(of command: String) -> [DeviceMessage] {
    guard command.hasPrefix("power") else { return [result(of: command)] }
    let power = DeviceMessage(topic: "stat/\(name)/POWER", text: isOn ? "ON" : "OFF")
    return [result(of: command), power]
  }
}

/// A blind behind Zigbee2MQTT, which takes time to move and reports its position meanwhile.
///
/// It accepts `{"position":0...100}`, with 100 for open, and `{"state":"OPEN"|"CLOSE"|"STOP"}`.
package struct MovingCover: SimulatedDevice {
  /// The time from one end to the other.
  package static let fullTravel = Duration.seconds(8)
  package static let reportInterval = Duration.milliseconds(500)

  package let name: String
  package private(set) var tally = CommandTally()

  private var position: Ramp
  private var nextReport: Moment?

  package init(name: String, position: Double = 0) {
    self.name = name
    self.position = Ramp(resting: position, at: .zero)
  }

  private var topic: String { "zigbee2mqtt/\(name)" }

  package var subscriptions: [String] { ["\(topic)/set", "\(topic)/get"] }

  package var nextWake: Moment? { nextReport }

  /// The position at `now`, from 0 (closed) to 100 (open).
  package func position(at now: Moment) -> Int { Int(position.value(at: now).rounded()) }

  package var will: [DeviceMessage] { [.zigbeeAvailability(topic, isOnline: false)] }

  package mutating func start(at now: Moment) -> [DeviceMessage] {
    [.zigbeeAvailability(topic, isOnline: true), report(at: now)]
  }

  package mutating func receive(_ message: DeviceMessage, at now: Moment) -> [DeviceMessage] {
    if message.topic == "\(topic)/get" { return [report(at: now)] }
    tally.received += 1
    guard let target = target(of: message, at: now) else {
      tally.refused += 1
      return []
    }
    let start = position.value(at: now)
    position = Ramp(from: start, to: target, start: now, whole: Self.fullTravel)
    return [report(at: now)]
  }

  package mutating func wake(at now: Moment) -> [DeviceMessage] {
    guard let due = nextReport, due <= now else { return [] }
    return [report(at: now)]
  }

  private func target(of message: DeviceMessage, at now: Moment) -> Double? {
    let command = message.object
    if let asked = command?["position"]?.double { return min(max(asked, 0), 100) }
    let word = command?["state"]?.string ?? message.text
    switch word.uppercased() {
    case "OPEN": return 100
    case "CLOSE": return 0
    case "STOP": return position.value(at: now).rounded()
    default: return nil
    }
  }

  private mutating func report(at now: Moment) -> DeviceMessage {
    let isMoving = position.isMoving(at: now)
    nextReport = isMoving ? min(now.advanced(by: Self.reportInterval), position.end) : nil
    let current = position(at: now)
    return DeviceMessage(
      topic: topic,
      json: .object([
        "position": .integer(Int64(current)), "state": current == 0 ? "CLOSE" : "OPEN",
        "moving": .boolean(isMoving),
      ]),
      retain: true
    )
  }
}

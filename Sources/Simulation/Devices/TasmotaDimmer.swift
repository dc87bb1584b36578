// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
internal import JSON
import JSONParsing
package import LastOut
internal import Values

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

  package mutating func receive(
    topic received: String,
    payload: [UInt8],
    at now: Moment
  ) -> [DeviceMessage] {
    guard let command = received.split(separator: "/").last?.lowercased() else { return [] }
    let text = String(decoding: payload, as: UTF8.self)
    var messages = answer(to: command, text)
    if reportsState, !text.isEmpty {
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
    guard !text.isEmpty else { return [result(showing: [command])] }
    tally.received += 1
    guard apply(command, text) else { return [refusal()] }
    return [result(showing: [command])] + powerMessages(after: [command])
  }

  private mutating func apply(members text: String) -> [DeviceMessage] {
    tally.received += 1
    guard case .object(let members)? = try? JSONParser.parse(text) else { return [refusal()] }
    var messages: [DeviceMessage] = []
    for member in members {
      let command = member.name.lowercased()
      let argument = member.value.string ?? JSONWriter.text(member.value)
      guard apply(command, argument) else { return messages + [refusal()] }
      messages += [result(showing: [command])] + powerMessages(after: [command])
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
  private func result(showing commands: [String]) -> DeviceMessage {
    let isPowerOnly = commands.allSatisfy { $0.hasPrefix("power") }
    return DeviceMessage(
      topic: "stat/\(name)/RESULT",
      json: isPowerOnly ? .object(["POWER": isOn ? "ON" : "OFF"]) : state
    )
  }

  private func powerMessages(after commands: [String]) -> [DeviceMessage] {
    guard commands.contains(where: { $0.hasPrefix("power") }) else { return [] }
    return [DeviceMessage(topic: "stat/\(name)/POWER", text: isOn ? "ON" : "OFF")]
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
import JSONParsing
package import LastOut
internal import Values

/// The messages of one convention: the meaning of commands and the form of reports.
///
/// A convention is stateless; ``ConventionalDevice`` adds state and time.
package protocol WireConvention: Sendable {
  /// The topic filters for commands and queries.
  var subscriptions: [String] { get }

  /// The message that reports the device online or offline; the latter is its last will.
  ///
  /// `nil` for a device that reports neither.
  func availability(_ isOnline: Bool) -> DeviceMessage?

  /// The messages after a start, before the states: at least the availability.
  var greeting: [DeviceMessage] { get }

  /// The answer to a message; `nil` for a message that is not for the device.
  func answer(
    topic: String,
    payload: [UInt8],
    memory: DeviceMemory,
    at now: Moment
  ) -> DeviceAnswer?

  /// The messages that report the state of a part.
  func report(of part: String, memory: DeviceMemory, at now: Moment) -> [DeviceMessage]
}

extension WireConvention {
  package var greeting: [DeviceMessage] { [availability(true)].compactMap(\.self) }

  /// The levels of a topic below `prefix`; `nil` for any other topic.
  package func levels(of topic: String, below prefix: String) -> [String]? {
    guard topic.hasPrefix(prefix + "/") else { return nil }
    return topic.dropFirst(prefix.count + 1).split(separator: "/").map(String.init)
  }
}

/// Reads payloads as devices do.
package enum WirePayload {
  /// The payload as text.
  package static func word(_ payload: [UInt8]) -> String {
    String(decoding: payload, as: UTF8.self)
  }

  /// The JSON object in the payload, if it is one.
  package static func object(_ payload: [UInt8]) -> JSONValue? {
    guard let value = try? JSONParser.parse(payload.span), case .object = value else { return nil }
    return value
  }

  /// The number in the payload, if it is one.
  package static func number(_ payload: [UInt8]) -> Double? {
    NumberText.parse(payload.span).flatMap { $0.isFinite ? $0 : nil }
  }

  /// Whether the payload is `on` or `off`; `nil` if it is neither.
  package static func flag(_ payload: [UInt8], on: String, off: String) -> Bool? {
    switch word(payload) {
    case on: true
    case off: false
    default: nil
    }
  }
}

/// The conventions with built-in profiles, by their names on the command line.
package enum ConventionName: String, CaseIterable, Sendable {
  case zigbee2mqtt
  case tasmota
  case shellyGen1 = "shelly-gen1"
  case shellyGen2 = "shelly-gen2"
  case esphome
  case wled
  case zwaveJS = "zwave-js"
  case homie
  case homeAssistant = "homeassistant"
  case frigate, evcc, opendtu, victron
}

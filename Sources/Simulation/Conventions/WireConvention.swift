// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
import JSONParsing
package import LastOut

/// How devices of one convention speak: what a message means, and how a state is told.
///
/// A value without memory of its own; ``ConventionalDevice`` makes it live.
package protocol WireConvention: Sendable {
  /// The topic filters for commands and questions.
  var subscriptions: [String] { get }

  /// How it is told that the device is there, or, as the broker does after its will, that it is not.
  func presence(_ isThere: Bool) -> DeviceMessage

  /// What the device says of itself when it comes up, before its states: its presence, if nothing
  /// else.
  var greeting: [DeviceMessage] { get }

  /// What the device does about a message; `nil` for one that is not for it.
  func answer(
    topic: String,
    payload: [UInt8],
    memory: DeviceMemory,
    at now: Moment
  ) -> DeviceAnswer?

  /// How the state of a part is told.
  func report(of part: String, memory: DeviceMemory, at now: Moment) -> [DeviceMessage]
}

extension WireConvention {
  package var greeting: [DeviceMessage] { [presence(true)] }

  /// The levels of a topic below `prefix`; `nil` for a topic elsewhere.
  package func levels(of topic: String, below prefix: String) -> [String]? {
    guard topic.hasPrefix(prefix + "/") else { return nil }
    return topic.dropFirst(prefix.count + 1).split(separator: "/").map(String.init)
  }
}

/// A payload as devices look at it.
package enum WirePayload {
  /// The payload as a bare word.
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

  /// `ON` and `OFF`, in the case of `words`.
  package static func flag(_ payload: [UInt8], on: String, off: String) -> Bool? {
    switch word(payload) {
    case on: true
    case off: false
    default: nil
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON

/// The effect of a command on one value of a simulated device's part.
package struct DeviceChange: Sendable {
  package enum Kind: Sendable {
    /// Sets the value immediately.
    case set(JSONValue)
    /// Moves the value linearly in a given time.
    case move(to: Double, over: Duration)
    /// Moves the value linearly; a distance of `span` takes `whole`.
    case travel(to: Double, span: Double, whole: Duration)
    /// Stops a movement.
    case stop
  }

  package let part: String
  package let name: String
  package let kind: Kind

  package init(_ part: String, _ name: String, _ kind: Kind) {
    self.part = part
    self.name = name
    self.kind = kind
  }
}

/// A simulated device's answer to a message.
package struct DeviceAnswer: Sendable {
  package var changes: [DeviceChange]
  /// The convention's own acknowledgement, sent before the state.
  package var acknowledgement: [DeviceMessage]
  /// Parts whose state was queried and is reported without a change.
  package var queriedParts: [String]
  /// Whether the message is an invalid command.
  package var isRefusal: Bool

  package init(
    _ changes: [DeviceChange] = [],
    acknowledgement: [DeviceMessage] = [],
    queriedParts: [String] = [],
    isRefusal: Bool = false
  ) {
    self.changes = changes
    self.acknowledgement = acknowledgement
    self.queriedParts = queriedParts
    self.isRefusal = isRefusal
  }

  /// The answer to an invalid command.
  package static func refused(_ messages: [DeviceMessage] = []) -> DeviceAnswer {
    DeviceAnswer(acknowledgement: messages, isRefusal: true)
  }
}

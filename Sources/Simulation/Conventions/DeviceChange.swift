// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON

/// What a command does to one value of a part of a simulated device.
package struct DeviceChange: Sendable {
  package enum Kind: Sendable {
    /// At once.
    case set(JSONValue)
    /// Evenly, in a stated time.
    case move(to: Double, over: Duration)
    /// Evenly; the whole way of `span` takes `whole`.
    case travel(to: Double, span: Double, whole: Duration)
    /// Stays where it is.
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

/// What a simulated device does about a message.
package struct DeviceAnswer: Sendable {
  package var changes: [DeviceChange]
  /// What it says before its state: its own acknowledgement, if the convention has one.
  package var acknowledgement: [DeviceMessage]
  /// Parts whose state is told although nothing changes.
  package var asked: [String]
  /// It was a command, and could not be carried out.
  package var isRefusal: Bool

  package init(
    _ changes: [DeviceChange] = [],
    acknowledgement: [DeviceMessage] = [],
    asked: [String] = [],
    isRefusal: Bool = false
  ) {
    self.changes = changes
    self.acknowledgement = acknowledgement
    self.asked = asked
    self.isRefusal = isRefusal
  }

  /// A command that could not be read, and what the device says to that.
  package static func refused(_ words: [DeviceMessage] = []) -> DeviceAnswer {
    DeviceAnswer(acknowledgement: words, isRefusal: true)
  }
}

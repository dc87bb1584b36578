// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON

/// Foreign events that become changes.
package struct InputConfiguration: Hashable, Sendable {
  package enum Operation: Hashable, Sendable {
    case set(JSONValue)
    case step(Double)
    case toggle
  }
  package struct Change: Hashable, Sendable {
    /// `device/property`.
    package var key: String
    package var operation: Operation
    package init(key: String, operation: Operation) {
      self.key = key
      self.operation = operation
    }
  }
  package var topic: String
  package var value: JSONPointer
  /// By the value found, as text.
  package var map: [String: Change]
  package init(topic: String, value: JSONPointer, map: [String: Change]) {
    self.topic = topic
    self.value = value
    self.map = map
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON

/// A topic whose events become changes.
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
  /// The topic filter to subscribe to.
  package var topic: String
  /// Where the event is in the payload.
  package var value: JSONPointer
  /// The source of its changes in their events; `nil` for `input:` and the topic.
  package var source: String?
  /// Changes by the event's text.
  package var map: [String: Change]
  package init(topic: String, value: JSONPointer, map: [String: Change]) {
    self.topic = topic
    self.value = value
    self.map = map
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// A topic on which a device that sleeps most of the time reports itself when it is awake.
package struct AwakeSource: Hashable, Sendable {
  package var topic: String
  /// The payload that means awake, an array lists alternatives; `nil`: any payload does.
  package var value: JSONValue?

  package init(topic: String, value: JSONValue? = nil) {
    self.topic = topic
    self.value = value
  }

  /// Whether a report means that the device is awake.
  ///
  /// `payload` is the parsed JSON, or a bare payload as a string.
  package func isAwake(in payload: JSONValue) -> Bool {
    value.map { payload.isSame(asAnyOf: $0) } ?? true
  }
}

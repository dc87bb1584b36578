// Settle
// SPDX-License-Identifier: Apache-2.0

import Values
package import JSON

/// A topic on which a device, or its bridge, reports whether it is online.
///
/// A device is online while every one of its sources is.
package struct AvailabilitySource: Hashable, Sendable {
  package var topic: String
  package var value: JSONPointer
  /// The report that means online; an array lists alternatives.
  package var online: JSONValue
  /// The report that means offline; an array lists alternatives.
  package var offline: JSONValue

  package init(topic: String, value: JSONPointer, online: JSONValue, offline: JSONValue) {
    self.topic = topic
    self.value = value
    self.online = online
    self.offline = offline
  }

  /// Reads a report; `nil` when it means neither online nor offline.
  ///
  /// `payload` is the parsed JSON, or a bare payload as a string.
  package func isOnline(in payload: JSONValue) -> Bool? {
    guard let found = value.value(in: payload) else { return nil }
    if found.isSame(asAnyOf: online) { return true }
    return found.isSame(asAnyOf: offline) ? false : nil
  }
}

extension JSONValue {
  /// Whether this scalar means the same as `words`, or as one of them.
  func isSame(asAnyOf words: JSONValue) -> Bool {
    if case .array(let alternatives) = words {
      return alternatives.contains { isSameScalar(as: $0) }
    }
    return isSameScalar(as: words)
  }
}

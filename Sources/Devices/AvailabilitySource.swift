// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// Where a device or its bridge says that it is there.
///
/// All sources of a device must hold.
package struct AvailabilitySource: Hashable, Sendable {
  package var topic: String
  package var value: JSONPointer
  /// What is reported then; one of its elements if it is an array.
  package var online: JSONValue
  /// What is reported then; one of its elements if it is an array.
  package var offline: JSONValue

  package init(topic: String, value: JSONPointer, online: JSONValue, offline: JSONValue) {
    self.topic = topic
    self.value = value
    self.online = online
    self.offline = offline
  }

  /// What a payload says: online, offline, or nothing (`nil`, which leaves things as they are).
  ///
  /// `payload` is the parsed JSON, or the bare text as a string.
  package func isOnline(in payload: JSONValue) -> Bool? {
    guard let found = value.value(in: payload) else { return nil }
    if found.isSame(asAnyOf: online) { return true }
    return found.isSame(asAnyOf: offline) ? false : nil
  }
}

extension JSONValue {
  fileprivate func isSame(asAnyOf words: JSONValue) -> Bool {
    if case .array(let alternatives) = words {
      return alternatives.contains { isSameScalar(as: $0) }
    }
    return isSameScalar(as: words)
  }
}

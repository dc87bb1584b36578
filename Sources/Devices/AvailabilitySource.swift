// Settle
// SPDX-License-Identifier: Apache-2.0

/// Where a device or its bridge says that it is there.
///
/// All sources of a device must hold.
package struct AvailabilitySource: Hashable, Sendable {
  package var topic: String
  package var value: JSONPointer
  package var online: JSONValue
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
    if found.isSameScalar(as: online) { return true }
    return found.isSameScalar(as: offline) ? false : nil
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// A controllable thing.
package struct Device: Hashable, Sendable {
  package var id: String
  package var name: String
  package var lane: String?
  /// When one property leaves, all pending ones with the same command topic leave in that message.
  package var merge = false
  /// Members of a device-level set that ride with the command and never go alone.
  package var options: [String] = []
  package var availability: [AvailabilitySource] = []
  package var properties: [Property]

  package init(id: String, name: String, properties: [Property]) {
    self.id = id
    self.name = name
    self.properties = properties
  }
}

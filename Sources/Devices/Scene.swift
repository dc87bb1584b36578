// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut
package import Values

/// Named values of several properties, which are set at one instant.
package struct Scene: Hashable, Sendable {
  /// One property and its value.
  package struct Part: Hashable, Sendable {
    /// `device/property`.
    package var key: String
    package var value: Value

    package init(key: String, value: Value) {
      self.key = key
      self.value = value
    }
  }

  package var id: String
  package var parts: [Part]

  package init(id: String, parts: [Part]) {
    self.id = id
    self.parts = parts
  }

  /// The properties and their values; without those that a reload has removed.
  package func values(in registry: Registry) -> [(key: KeyIndex, value: Value)] {
    parts.compactMap { part in
      registry.index(ofKey: part.key.utf8.span).map { ($0, part.value) }
    }
  }
}

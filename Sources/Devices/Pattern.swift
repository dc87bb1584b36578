// Settle
// SPDX-License-Identifier: Apache-2.0

/// A pattern over keys: `*` any characters, `/` included; `?` one.
package struct Pattern: Hashable, Sendable {
  package init(_ text: String) { fatalError("skeleton") }
  /// Whether the text has no wildcard, and so names one key.
  package var isLiteral: Bool { fatalError("skeleton") }
  package func matches(_ key: String) -> Bool { fatalError("skeleton") }
}

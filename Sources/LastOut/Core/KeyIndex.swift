// Settle
// SPDX-License-Identifier: Apache-2.0

/// A key's dense number: what the queue works with instead of a name.
@usableFromInline
package struct KeyIndex: Hashable, Sendable {
  /// The position, counted from zero.
  @usableFromInline
  package let rawValue: Int32

  /// Creates an index from its position, which must not be negative.
  @inlinable
  package init(_ rawValue: Int32) {
    self.rawValue = rawValue
  }
}

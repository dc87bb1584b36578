// Settle
// SPDX-License-Identifier: Apache-2.0

/// A place inside a JSON document (RFC 6901); empty means the whole document.
package struct JSONPointer: Hashable, Sendable {
  /// `nil` when `text` is not a pointer.
  package init?(_ text: String) { fatalError("skeleton") }
  package static let whole: JSONPointer = { fatalError("skeleton") }()
  package var isWhole: Bool { fatalError("skeleton") }
  package func value(in document: JSONValue) -> JSONValue? { fatalError("skeleton") }
}

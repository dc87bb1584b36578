// Settle
// SPDX-License-Identifier: Apache-2.0

/// Rules for topic names and filters, checked before the C boundary.
package enum Topic {
  /// Why `name` cannot be published to; `nil` if it can: not empty, at most 65,535 bytes and 200
  /// levels, no NUL, control character, wildcard or leading `$`.
  package static func problem(inName name: String) -> String? { fatalError("skeleton") }
  /// Why `filter` cannot be subscribed to.
  package static func problem(inFilter filter: String) -> String? { fatalError("skeleton") }
  /// Whether `filter` matches `name`.
  package static func matches(filter: String, name: String) -> Bool { fatalError("skeleton") }
  /// Whether some topic name could match both filters.
  package static func overlaps(_ left: String, _ right: String) -> Bool { fatalError("skeleton") }
  /// What the wildcards of `filter` stand for in `name`, in order; `nil` if it does not match.
  package static func captures(filter: String, name: String) -> [String]? { fatalError("skeleton") }
  /// `template` (a filter) with its wildcards filled in, in order.
  package static func fill(template: String, with captures: [String]) -> String? { fatalError("skeleton") }
}

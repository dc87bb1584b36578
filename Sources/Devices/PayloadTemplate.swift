// Settle
// SPDX-License-Identifier: Apache-2.0

/// A command's payload: a JSON structure in which `$value` stands for the typed value.
package struct PayloadTemplate: Hashable, Sendable {
  /// Compiles a structure; a scalar `$value` sends the bare value.
  package init(_ structure: JSONValue) { fatalError("skeleton") }

  /// Appends the payload for one wire value.
  package func render(_ wire: JSONValue, into output: inout [UInt8]) { fatalError("skeleton") }

  /// Appends one payload that carries several properties (`merge: true`), members in the order
  /// given, followed by `options`. All templates must be objects (see ``isObject``).
  package static func render(
    merging parts: [(template: PayloadTemplate, wire: JSONValue)],
    options: [JSONValue.Member] = [], into output: inout [UInt8]
  ) { fatalError("skeleton") }

  /// Whether the payload is a JSON object, which is what merging needs.
  package var isObject: Bool { fatalError("skeleton") }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON

/// A YAML file's parts with their places in its bytes, so that some can be changed and the rest left
/// as a person wrote it.
package final class YAMLOutline: Sendable {
  package enum Content: Sendable {
    /// A word, number, text, true, false or nothing.
    case scalar(JSONValue)
    case sequence([YAMLOutline])
    /// In the order of the file.
    case mapping([Entry])
  }

  /// One entry of a mapping.
  package struct Entry: Sendable {
    package let key: String
    /// Where the key begins.
    package let start: Int
    package let value: YAMLOutline
  }

  package let content: Content
  /// The bytes of the value, quotes and brackets included; for an alias those of the alias.
  package let range: Range<Int>
  /// Whether the value may be replaced by another on the same line: no block, no alias.
  package let isInline: Bool
  /// Whether this stands for something elsewhere in the file.
  package let isAlias: Bool

  init(_ content: Content, range: Range<Int>, isInline: Bool, isAlias: Bool = false) {
    self.content = content
    self.range = range
    self.isInline = isInline
    self.isAlias = isAlias
  }

  /// The entries, if this is a mapping.
  package var entries: [Entry]? {
    if case .mapping(let entries) = content { entries } else { nil }
  }

  /// The value of the first entry called `key`.
  package subscript(key: String) -> YAMLOutline? {
    entries?.first { $0.key == key }?.value
  }

  /// The value without its places.
  package var json: JSONValue {
    switch content {
    case .scalar(let value): value
    case .sequence(let elements): .array(elements.map(\.json))
    case .mapping(let entries): .object(entries.map { JSONValue.Member($0.key, $0.value.json) })
    }
  }

  /// Reads a file's bytes; `nil` where it is empty.
  ///
  /// - Throws: Every mistake of the YAML itself, with `file` as its place.
  package static func read(
    _ bytes: [UInt8],
    file: String
  ) throws(ConfigurationFailure) -> YAMLOutline? {
    let problems = Problems()
    _ = YAMLReader.read(bytes, file: file, problems: problems)
    guard problems.errors.isEmpty else { throw ConfigurationFailure(problems: problems.errors) }
    return YAMLOutlineBuilder.read(bytes)
  }
}

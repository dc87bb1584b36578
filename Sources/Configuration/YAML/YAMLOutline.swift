// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON

/// A YAML node with its range of bytes, so that an edit can keep the rest of the file as it is.
package final class YAMLOutline: Sendable {
  package enum Content: Sendable {
    /// A string, number, boolean or null.
    case scalar(JSONValue)
    case sequence([YAMLOutline])
    /// Entries in the order of the file.
    case mapping([Entry])
  }

  /// One entry of a mapping.
  package struct Entry: Sendable {
    package let key: String
    /// The key's offset, in bytes.
    package let start: Int
    package let value: YAMLOutline
  }

  package let content: Content
  /// The value's range of bytes, with quotes and brackets; for an alias, the range of the alias.
  package let range: Range<Int>
  /// Whether another value can replace this one on the same line: not a block and not an alias.
  package let isInline: Bool
  /// Whether this is an alias of an anchor elsewhere in the file.
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

  /// The value without byte ranges.
  package var json: JSONValue {
    switch content {
    case .scalar(let value): value
    case .sequence(let elements): .array(elements.map(\.json))
    case .mapping(let entries): .object(entries.map { JSONValue.Member($0.key, $0.value.json) })
    }
  }

  /// Reads a file's bytes; `nil` when it is empty.
  ///
  /// - Throws: ``ConfigurationFailure`` with every YAML syntax error, at positions in `file`.
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

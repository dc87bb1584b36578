// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CFYAML
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

/// Builds an outline from libfyaml's events, for text that is already checked.
struct YAMLOutlineBuilder {
  /// An open sequence or mapping.
  private struct Container {
    let isMapping: Bool
    let isFlow: Bool
    let start: Int
    let anchor: String?
    var elements: [YAMLOutline] = []
    var entries: [YAMLOutline.Entry] = []
    var key: (text: String, start: Int)?
    /// The end of the last element, which is the end of a block collection.
    var end: Int
  }

  private let bytes: [UInt8]
  private var stack: [Container] = []
  private var anchors: [String: YAMLOutline] = [:]
  private var root: YAMLOutline?

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  static func read(_ bytes: [UInt8]) -> YAMLOutline? {
    var builder = YAMLOutlineBuilder(bytes)
    var options = unsafe fy_parse_cfg()
    unsafe options.flags = fy_parse_cfg_flags(FYPCF_QUIET.rawValue)
    guard let parser = unsafe fy_parser_create(&options) else { return nil }
    defer { unsafe fy_parser_destroy(parser) }
    unsafe bytes.withUnsafeBytes { buffer in
      guard let base = buffer.baseAddress else { return }
      let text = unsafe base.assumingMemoryBound(to: CChar.self)
      guard unsafe fy_parser_set_string(parser, text, buffer.count) == 0 else { return }
      while let event = unsafe fy_parser_parse(parser) {
        unsafe builder.handle(event)
        unsafe fy_parser_event_free(parser, event)
      }
    }
    return builder.root
  }

  private mutating func handle(_ event: UnsafeMutablePointer<fy_event>) {
    let start = unsafe fy_event_start_mark(event).map { Int(unsafe $0.pointee.input_pos) }
    let end = unsafe fy_event_end_mark(event).map { Int(unsafe $0.pointee.input_pos) }
    let anchor = unsafe YAMLReader.text(settle_anchor_token(event))
    let offset = start ?? stack.last?.end ?? 0
    switch unsafe event.pointee.type {
    case FYET_SCALAR:
      let token = unsafe settle_scalar_token(event)
      let style = unsafe fy_token_scalar_style(token)
      var range = offset..<max(offset, end ?? offset)
      if style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED {
        // The token's marks exclude the quotes.
        range = max(0, range.lowerBound - 1)..<min(bytes.count, range.upperBound + 1)
      }
      let text = unsafe YAMLReader.text(token) ?? ""
      let value = YAMLNode(
        .scalar(text, isPlain: style == FYSS_PLAIN),
        at: SourcePosition.whole("")
      )
      let isBlock = style == FYSS_LITERAL || style == FYSS_FOLDED
      add(
        YAMLOutline(
          .scalar(value.scalarJSON ?? .null),
          range: range,
          isInline: !isBlock && start != nil
        ),
        anchor: anchor,
        key: text
      )
    case FYET_ALIAS:
      let name = unsafe YAMLReader.text(settle_alias_token(event)) ?? ""
      let range = offset..<max(offset, end ?? offset)
      let content = anchors[name]?.content ?? .scalar(.null)
      add(YAMLOutline(content, range: range, isInline: false, isAlias: true), anchor: nil)
    case FYET_SEQUENCE_START, FYET_MAPPING_START:
      let isMapping = unsafe event.pointee.type == FYET_MAPPING_START
      let isFlow = offset < bytes.count && bytes[offset] == UInt8(ascii: isMapping ? "{" : "[")
      stack.append(
        Container(isMapping: isMapping, isFlow: isFlow, start: offset, anchor: anchor, end: offset)
      )
    case FYET_SEQUENCE_END, FYET_MAPPING_END:
      guard let container = stack.popLast() else { return }
      let end = container.isFlow ? max(end ?? container.end, container.start) : container.end
      add(
        YAMLOutline(
          container.isMapping ? .mapping(container.entries) : .sequence(container.elements),
          range: container.start..<end,
          isInline: container.isFlow
        ),
        anchor: container.anchor
      )
    default: return
    }
  }

  private mutating func add(_ node: YAMLOutline, anchor: String?, key text: String = "") {
    if let anchor { anchors[anchor] = node }
    guard let last = stack.indices.last else {
      root = node
      return
    }
    stack[last].end = max(stack[last].end, node.range.upperBound)
    guard stack[last].isMapping else {
      stack[last].elements.append(node)
      return
    }
    if let key = stack[last].key {
      stack[last].entries.append(YAMLOutline.Entry(key: key.text, start: key.start, value: node))
      stack[last].key = nil
    } else {
      stack[last].key = (text, node.range.lowerBound)
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CFYAML
internal import Values

/// Parses a YAML 1.2 file into nodes with positions.
///
/// Aliases are shared, not copied, so an "alias bomb" takes no more memory than its file. Nesting
/// is limited to ``maximumDepth``. After a syntax error, the top-level entries before it are kept.
enum YAMLReader {
  /// The maximum nesting of sequences and mappings.
  static let maximumDepth = 64

  /// The root of the only document in `bytes`; `nil` when it is empty.
  ///
  /// Mistakes are added to `problems`.
  static func read(_ bytes: [UInt8], file: String, problems: Problems) -> YAMLNode? {
    if let problem = TextCheck.problem(in: bytes, file: file) {
      problems.add(problem)
      return nil
    }
    var builder = YAMLTreeBuilder(file: file, problems: problems)
    unsafe bytes.withUnsafeBytes { buffer in
      guard let base = buffer.baseAddress, unsafe !buffer.isEmpty else { return }
      let text = unsafe base.assumingMemoryBound(to: CChar.self)
      unsafe parse(text, count: buffer.count, into: &builder, file: file, problems: problems)
    }
    return builder.root
  }

  private static func parse(
    _ text: UnsafePointer<CChar>,
    count: Int,
    into builder: inout YAMLTreeBuilder,
    file: String,
    problems: Problems
  ) {
    var diagnosticsOptions = unsafe fy_diag_cfg()
    unsafe fy_diag_cfg_default(&diagnosticsOptions)
    unsafe diagnosticsOptions.fp = nil
    guard let diagnostics = unsafe fy_diag_create(&diagnosticsOptions) else {
      return problems.add(.whole(file), "cannot be read: fy_diag_create failed")
    }
    defer { unsafe fy_diag_destroy(diagnostics) }
    unsafe fy_diag_set_collect_errors(diagnostics, true)
    var options = unsafe fy_parse_cfg()
    unsafe options.flags = fy_parse_cfg_flags(
      FYPCF_QUIET.rawValue | FYPCF_COLLECT_DIAG.rawValue | FYPCF_ALLOW_DUPLICATE_KEYS.rawValue
    )
    unsafe options.diag = diagnostics
    guard let parser = unsafe fy_parser_create(&options) else {
      return problems.add(.whole(file), "cannot be read: fy_parser_create failed")
    }
    defer { unsafe fy_parser_destroy(parser) }
    guard unsafe fy_parser_set_string(parser, text, count) == 0 else {
      return problems.add(.whole(file), "cannot be read: fy_parser_set_string failed")
    }
    while let event = unsafe fy_parser_parse(parser) {
      defer { unsafe fy_parser_event_free(parser, event) }
      guard unsafe handle(event, into: &builder) else { return }
    }
    guard unsafe fy_parser_get_stream_error(parser) else { return }
    builder.abandonUnfinished()
    unsafe report(diagnostics, file: file, problems: problems)
  }

  /// Passes one event to the builder; `false` stops parsing.
  private static func handle(
    _ event: UnsafeMutablePointer<fy_event>,
    into builder: inout YAMLTreeBuilder
  ) -> Bool {
    var mark = builder.lastMark
    if let found = unsafe fy_event_start_mark(event) {
      unsafe mark = (Int(found.pointee.line) + 1, Int(found.pointee.column) + 1)
    }
    let anchor = unsafe text(settle_anchor_token(event))
    let tag = unsafe text(settle_tag_token(event))
    switch unsafe event.pointee.type {
    case FYET_SCALAR:
      let token = unsafe settle_scalar_token(event)
      let style = unsafe fy_token_scalar_style(token)
      let isQuoted = style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED
      if isQuoted, mark.column > 1 { mark.column -= 1 }
      return builder.scalar(
        unsafe text(token) ?? "",
        isPlain: style == FYSS_PLAIN && tag != "tag:yaml.org,2002:str",
        anchor: anchor,
        tag: tag,
        at: mark
      )
    case FYET_ALIAS: return builder.alias(unsafe text(settle_alias_token(event)) ?? "", at: mark)
    case FYET_SEQUENCE_START:
      return builder.open(isMapping: false, anchor: anchor, tag: tag, at: mark)
    case FYET_MAPPING_START:
      return builder.open(isMapping: true, anchor: anchor, tag: tag, at: mark)
    case FYET_SEQUENCE_END, FYET_MAPPING_END: return builder.close()
    case FYET_DOCUMENT_START: return builder.beginDocument(at: mark)
    default: return true
    }
  }

  /// The text of a token; `nil` without one.
  static func text(_ token: OpaquePointer?) -> String? {
    guard let token = unsafe token else { return nil }
    var length = 0
    guard let start = unsafe fy_token_get_text(token, &length) else { return nil }
    let buffer = unsafe UnsafeRawBufferPointer(start: start, count: length)
    return unsafe String(decoding: buffer, as: UTF8.self)
  }

  private static func report(_ diagnostics: OpaquePointer, file: String, problems: Problems) {
    var cursor: UnsafeMutableRawPointer?
    var count = 0
    while let error = unsafe fy_diag_errors_iterate(diagnostics, &cursor) {
      let message = unsafe error.pointee.msg.map { unsafe String(cString: $0) } ?? "syntax error"
      let position = unsafe SourcePosition(
        file: file,
        line: max(1, Int(error.pointee.line)),
        column: max(1, Int(error.pointee.column))
      )
      let words = YAMLComplaint.words(for: Excerpt.of(message, limit: 200))
      problems.add(position, "YAML syntax: \(words)")
      count += 1
    }
    if count == 0 { problems.add(.whole(file), "YAML syntax: the file is not YAML 1.2") }
  }
}

/// Checks that a file is UTF-8 text, which the YAML parser does not report.
enum TextCheck {
  /// The first invalid byte or control character; `nil` for valid text.
  static func problem(in bytes: [UInt8], file: String) -> ConfigurationProblem? {
    var index = 0
    var line = 1
    var column = 1
    while index < bytes.count {
      let byte = bytes[index]
      let length = length(at: index, in: bytes)
      let problem: String? =
        if length == 0 {
          "byte \(hex(byte)) is not UTF-8; the file must be text in UTF-8"
        } else if (byte < 0x20 && byte != 0x09 && byte != 0x0A && byte != 0x0D) || byte == 0x7F {
          "control character \(hex(byte)) is not allowed in a text file"
        } else {
          nil
        }
      if let problem {
        return ConfigurationProblem(file: file, line: line, column: column, message: problem)
      }
      index += length
      column += 1
      if byte == 0x0A {
        line += 1
        column = 1
      }
    }
    return nil
  }

  /// The length of the UTF-8 sequence at `index`; 0 when it is invalid.
  private static func length(at index: Int, in bytes: [UInt8]) -> Int {
    let first = bytes[index]
    if first < 0x80 { return 1 }
    let (length, lowest, highest): (Int, UInt8, UInt8) =
      switch first {
      case 0xC2...0xDF: (2, 0x80, 0xBF)
      case 0xE0: (3, 0xA0, 0xBF)
      case 0xED: (3, 0x80, 0x9F)
      case 0xE1...0xEF: (3, 0x80, 0xBF)
      case 0xF0: (4, 0x90, 0xBF)
      case 0xF1...0xF3: (4, 0x80, 0xBF)
      case 0xF4: (4, 0x80, 0x8F)
      default: (0, 0, 0)
      }
    guard length > 0, index + length <= bytes.count,
      (lowest...highest).contains(bytes[index + 1])
    else { return 0 }
    for offset in 2..<max(length, 2) where bytes[index + offset] & 0xC0 != 0x80 { return 0 }
    return length
  }

  private static func hex(_ byte: UInt8) -> String {
    (byte < 16 ? "0x0" : "0x") + String(byte, radix: 16, uppercase: true)
  }
}

/// Messages of the YAML parser in words that name the likely fix.
enum YAMLComplaint {
  /// The words for a message; the message itself where its cause is not a usual one.
  static func words(for message: String) -> String {
    let unquotable = "plain scalar cannot start with "
    if message.hasPrefix(unquotable),
      let sign = message.dropFirst(unquotable.count).split(separator: " ").first
    {
      return "a text that begins with \(sign) needs quotes"
    }
    return table.first { message.has($0.part) }?.words ?? message
  }

  /// Words by a part of the message; the first part that matches counts.
  private static let table: [(part: String, words: String)] = [
    (
      "invalid multiline plain key",
      "this text runs on into the next line, which is 'key: value'; is a ':' missing, or the space"
        + " after it, or is the next line indented too far?"
    ),
    (
      "invalid value after mapping",
      "this line is not 'key: value'; is the ':' missing, or the space after it?"
    ),
    (
      "could not find expected ':'",
      "this line is not 'key: value'; is the ':' missing, or the space after it?"
    ),
    ("tab", "a tab cannot indent; use spaces"),
    ("flow sequence without a closing", "a list that '[' begins has no ']'"),
    ("flow mapping without a closing", "a mapping that '{' begins has no '}'"),
    (
      "missing comma in flow mapping",
      "between the entries of '{…}' a ',' is missing, or a '}' at its end"
    ),
    (
      "missing comma in flow sequence",
      "between the entries of '[…]' a ',' is missing, or a ']' at its end"
    ),
    ("single-quoted scalar without closing quote", "the closing ' of this text is missing"),
    ("double-quoted scalar without closing quote", "the closing \" of this text is missing"),
    (
      "wrongly indented double-quoted scalar",
      "the closing \" of this text is missing, or its next line is not indented"
    ),
    (
      "wrongly indented single-quoted scalar",
      "the closing ' of this text is missing, or its next line is not indented"
    ),
    (
      "invalid nested block mapping on the same line",
      "a second ': ' in one line; put the value in quotes"
    ),
    ("invalid indentation in mapping", differentIndentation),
    ("wrongly indented", differentIndentation),
    ("indent for", differentIndentation),
    ("invalid alias", "'*' begins an alias; put the text in quotes"),
    ("invalid anchor", "'&' begins an anchor; put the text in quotes"),
    (
      "invalid mapping key (not allowed in this context)",
      "'?' begins a key; put the text in quotes"
    ),
    (
      "invalid scalar at the end of block sequence",
      "this line is not part of the list before it; begin it with '- ', or indent it like the key"
        + " of the list"
    ),
    (
      "did not find expected key",
      "a list entry stands among keys; write each line as 'key: value', or each as '- value'"
    ),
    (
      "did not find expected node content",
      "a value is missing before this comma or bracket"
    ),
    (
      "invalid escape",
      "this backslash has no meaning in double quotes; double it, or use single quotes"
    ),
    ("extra closing bracket", "this ']' closes nothing"),
    ("extra closing brace", "this '}' closes nothing"),
    ("mismatched flow mapping end", "'}' does not close the list that '[' began"),
    ("mismatched flow sequence end", "']' does not close the mapping that '{' began"),
    ("invalid trailing content after", "text follows the closing quote; quote all of it"),
    ("block scalar no linebreak", "text follows '|' or '>'; begin it on the next line"),
    ("invalid comment without whitespace", "a comment needs a space before its '#'"),
  ]

  private static let differentIndentation =
    "this line is indented differently from the ones that it belongs to"
}

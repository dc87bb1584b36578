// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CJansson
internal import Glibc

/// Parses JSON text with jansson: any top-level value, bounded depth, positions in errors.
///
/// Objects keep the order of their members; a duplicate name in an object is an error.
/// A NUL written as `\u0000` is allowed in strings and refused in names. Integers are exact within
/// 64 bits and become numbers beyond. The caller limits the size.
package enum JSONParser {
  /// The maximum nesting of arrays and objects.
  package static let maximumDepth = 256

  /// Reads `text` as one JSON value.
  package static func parse(_ text: String) throws(JSONParseError) -> JSONValue {
    try parse(text.utf8.span)
  }

  /// Reads `bytes` as one JSON value; anything but white space after it is an error.
  package static func parse(_ bytes: Span<UInt8>) throws(JSONParseError) -> JSONValue {
    if isBlank(bytes) {
      throw JSONParseError(message: "expected a JSON value, found nothing", line: 1, column: 1)
    }
    do throws(JSONFailure) {
      return try load(bytes)
    } catch {
      let text = SourceText(bytes)
      guard error.kind == .numericOverflow, let widened = text.wideningLongIntegers() else {
        throw text.error(for: error)
      }
      do throws(JSONFailure) {
        return try load(widened.bytes.span)
      } catch {
        throw text.error(for: error, at: widened.originalPosition(of: error.position))
      }
    }
  }

  /// Reads `bytes` like ``parse(_:)``, with every number as a text, in the digits that it has there.
  package static func parseQuotingNumbers(
    _ bytes: Span<UInt8>
  ) throws(JSONParseError) -> JSONValue {
    let text = SourceText(bytes).quotingNumbers()
    return try parse(text.span)
  }

  private static func load(_ bytes: Span<UInt8>) throws(JSONFailure) -> JSONValue {
    let document = try JSONDocument(bytes)
    return try document.value()
  }

  private static func isBlank(_ bytes: Span<UInt8>) -> Bool {
    for index in bytes.indices where !SourceText.isWhitespace(bytes[index]) { return false }
    return true
  }
}

/// Why a text is not JSON, and where.
///
/// Lines and columns count from 1; columns count characters, and name the last one that was read.
package struct JSONParseError: Error, Hashable, Sendable, CustomStringConvertible {
  package let message: String
  package let line: Int
  package let column: Int

  package init(message: String, line: Int, column: Int) {
    self.message = message
    self.line = line
    self.column = column
  }

  package var description: String { "\(message) (line \(line), column \(column))" }
}

/// A failure of jansson or of the walk over its tree; positions are not yet lines and columns.
struct JSONFailure: Error {
  enum Kind {
    case numericOverflow
    case tooDeep
    case other
  }

  let kind: Kind
  let message: String
  /// The number of bytes read.
  let position: Int

  /// Arrays and objects nest too deep, wherever that is.
  static let tooDeep = JSONFailure(
    kind: .tooDeep,
    message: "arrays and objects nest deeper than \(JSONParser.maximumDepth)",
    position: 0
  )
}

/// Owns one tree of jansson; the compiler guarantees a single release.
@safe struct JSONDocument: ~Copyable {
  private let root: UnsafeMutablePointer<json_t>

  /// Reads `bytes`.
  ///
  /// The corresponding C function is `json_loadb`.
  init(_ bytes: Span<UInt8>) throws(JSONFailure) {
    // jansson treats a NUL outside strings as the end of the text.
    let nul = unsafe bytes.withUnsafeBytes { buffer -> Int? in
      guard let start = buffer.baseAddress else { return nil }
      return unsafe memchr(start, 0, buffer.count).map { unsafe UnsafeRawPointer($0) - start }
    }
    if let nul {
      let message = "a NUL byte is not allowed in JSON text"
      throw JSONFailure(kind: .other, message: message, position: nul + 1)
    }
    let flags = JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL
    var error = json_error_t()
    let root = unsafe bytes.withUnsafeBytes { buffer in
      unsafe json_loadb(
        buffer.baseAddress?.assumingMemoryBound(to: CChar.self),
        buffer.count,
        Int(flags),
        &error
      )
    }
    guard let root = unsafe root else { throw Self.failure(&error) }
    unsafe self.root = root
  }

  deinit { unsafe json_decref(root) }

  /// The tree as a ``JSONValue``.
  func value() throws(JSONFailure) -> JSONValue {
    try unsafe Self.value(of: root, depth: 0)
  }

  private static func value(
    of node: UnsafeMutablePointer<json_t>,
    depth: Int
  ) throws(JSONFailure) -> JSONValue {
    let type = unsafe json_type(rawValue: UInt32(settle_json_type(node)))
    switch type {
    case JSON_STRING: return .string(unsafe text(json_string_value(node), json_string_length(node)))
    case JSON_INTEGER: return .integer(Int64(unsafe json_integer_value(node)))
    case JSON_REAL: return .number(unsafe json_real_value(node))
    case JSON_TRUE: return .boolean(true)
    case JSON_FALSE: return .boolean(false)
    case JSON_ARRAY: return .array(try unsafe elements(of: node, depth: depth + 1))
    case JSON_OBJECT: return .object(try unsafe members(of: node, depth: depth + 1))
    default: return .null
    }
  }

  private static func elements(
    of array: UnsafeMutablePointer<json_t>,
    depth: Int
  ) throws(JSONFailure) -> [JSONValue] {
    try check(depth)
    let count = unsafe json_array_size(array)
    var elements: [JSONValue] = []
    elements.reserveCapacity(count)
    for index in 0..<count {
      guard let element = unsafe json_array_get(array, index) else { break }
      elements.append(try unsafe value(of: element, depth: depth))
    }
    return elements
  }

  private static func members(
    of object: UnsafeMutablePointer<json_t>,
    depth: Int
  ) throws(JSONFailure) -> [JSONValue.Member] {
    try check(depth)
    var members: [JSONValue.Member] = []
    members.reserveCapacity(unsafe json_object_size(object))
    // jansson iterates in the order in which members were added (since 2.8).
    var iterator = unsafe json_object_iter(object)
    while let current = unsafe iterator {
      if let member = unsafe json_object_iter_value(current) {
        let name = unsafe text(json_object_iter_key(current), json_object_iter_key_len(current))
        members.append(.init(name, try unsafe value(of: member, depth: depth)))
      }
      unsafe iterator = json_object_iter_next(object, current)
    }
    return members
  }

  private static func check(_ depth: Int) throws(JSONFailure) {
    if depth > JSONParser.maximumDepth { throw JSONFailure.tooDeep }
  }

  private static func text(_ start: UnsafePointer<CChar>?, _ count: Int) -> String {
    unsafe String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
  }

  private static func failure(_ error: inout json_error_t) -> JSONFailure {
    let details = unsafe String(cString: settle_json_error_text(&error))
    let code = unsafe json_error_code(rawValue: UInt32(settle_json_error_code(&error)))
    let message: String
    switch code {
    case json_error_stack_overflow: return .tooDeep
    case json_error_out_of_memory: message = "no memory left for this JSON text"
    case json_error_invalid_utf8: message = "text is not UTF-8: \(details)"
    case json_error_premature_end_of_input: message = "the text ends too early: \(details)"
    case json_error_end_of_input_expected: message = "only one JSON value is allowed: \(details)"
    case json_error_null_byte_in_key: message = "a member's name may not contain NUL"
    case json_error_duplicate_key: message = "the same member comes twice: \(details)"
    case json_error_numeric_overflow: message = "the number is too large: \(details)"
    default: message = details
    }
    let kind: JSONFailure.Kind = code == json_error_numeric_overflow ? .numericOverflow : .other
    return JSONFailure(kind: kind, message: message, position: Int(error.position))
  }
}

/// A copy of the text, for error messages.
struct SourceText {
  private let bytes: [UInt8]

  init(_ bytes: Span<UInt8>) {
    self.bytes = unsafe bytes.withUnsafeBufferPointer { unsafe Array($0) }
  }

  /// Whether a byte is JSON white space.
  static func isWhitespace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
  }

  /// The error for a failure, with its line and column.
  func error(for failure: JSONFailure, at position: Int? = nil) -> JSONParseError {
    let position = failure.kind == .tooDeep ? tooDeepPosition() : position ?? failure.position
    let (line, column) = place(of: position)
    return JSONParseError(message: failure.message, line: line, column: column)
  }

  /// The same text with integers that do not fit 64 bits written as reals, which do.
  ///
  /// `nil` when there are none, so that a real out of range stays an error.
  func wideningLongIntegers() -> WidenedText? {
    var widened = WidenedText()
    var copied = 0
    forEachNumber { number in
      guard isLongInteger(number) else { return }
      widened.append(bytes[copied..<number.upperBound])
      widened.insertExponent()
      copied = number.upperBound
    }
    guard !widened.bytes.isEmpty else { return nil }
    widened.append(bytes[copied...])
    return widened
  }

  /// The same text with quotes around each number.
  func quotingNumbers() -> [UInt8] {
    var quoted: [UInt8] = []
    var copied = 0
    forEachNumber { number in
      quoted += bytes[copied..<number.lowerBound]
      quoted.append(UInt8(ascii: "\""))
      quoted += bytes[number]
      quoted.append(UInt8(ascii: "\""))
      copied = number.upperBound
    }
    return quoted + bytes[copied...]
  }

  private func forEachNumber(_ body: (Range<Int>) -> Void) {
    var index = 0
    var inString = false
    while index < bytes.count {
      let byte = bytes[index]
      if inString {
        if byte == UInt8(ascii: "\\") { index += 1 }
        if byte == UInt8(ascii: "\"") { inString = false }
        index += 1
      } else if byte == UInt8(ascii: "\"") {
        inString = true
        index += 1
      } else if byte == UInt8(ascii: "-") || Self.isDigit(byte) {
        let end = endOfNumber(from: index)
        body(index..<end)
        index = end
      } else {
        index += 1
      }
    }
  }

  private func endOfNumber(from start: Int) -> Int {
    var index = start + 1
    while index < bytes.count, Self.isDigit(bytes[index]) || "+-.eE".utf8.contains(bytes[index]) {
      index += 1
    }
    return index
  }

  /// Whether the number is written as an integer and does not fit 64 bits.
  private func isLongInteger(_ number: Range<Int>) -> Bool {
    guard number.count >= 19 else { return false }
    let token = bytes[number]
    return token.dropFirst().allSatisfy(Self.isDigit)
      && Int64(String(decoding: token, as: UTF8.self)) == nil
  }

  private static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

  /// The number of bytes read when the nesting became too deep.
  private func tooDeepPosition() -> Int {
    var depth = 0
    var inString = false
    var index = 0
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "\\") where inString: index += 1
      case UInt8(ascii: "\""): inString.toggle()
      case UInt8(ascii: "["), UInt8(ascii: "{"): if !inString { depth += 1 }
      case UInt8(ascii: "]"), UInt8(ascii: "}"): if !inString { depth -= 1 }
      default: break
      }
      index += 1
      if depth > JSONParser.maximumDepth { break }
    }
    return index
  }

  private func place(of position: Int) -> (line: Int, column: Int) {
    var line = 1
    var column = 0
    for index in 0..<min(position, bytes.count) {
      if bytes[index] == 0x0A {
        line += 1
        column = 0
      } else if bytes[index] & 0xC0 != 0x80 {
        column += 1
      }
    }
    return (line, max(column, 1))
  }
}

/// A text with an exponent added to some of its integers, and a mapping to the original positions.
struct WidenedText {
  private(set) var bytes: [UInt8] = []
  /// The positions of the added exponents in ``bytes``; ascending.
  private var exponents: [Int] = []

  mutating func append(_ source: ArraySlice<UInt8>) { bytes.append(contentsOf: source) }

  mutating func insertExponent() {
    exponents.append(bytes.count)
    bytes.append(contentsOf: "e0".utf8)
  }

  /// The position in the original text of a position in this one.
  func originalPosition(of position: Int) -> Int {
    position - 2 * exponents.count { $0 < position }
  }
}

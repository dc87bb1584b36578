// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CJansson
internal import JSON
internal import Glibc

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
    if let nul { throw JSONFailure(kind: .nulByte, message: "", position: nul + 1) }
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
    if depth > JSONParser.maximumDepth {
      throw JSONFailure(kind: .tooDeep, message: "", position: 0)
    }
  }

  private static func text(_ start: UnsafePointer<CChar>?, _ count: Int) -> String {
    unsafe String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
  }

  private static func failure(_ error: inout json_error_t) -> JSONFailure {
    let message = unsafe String(cString: settle_json_error_text(&error))
    let code = unsafe json_error_code(rawValue: UInt32(settle_json_error_code(&error)))
    let kind: JSONFailure.Kind =
      switch code {
      case json_error_out_of_memory: .outOfMemory
      case json_error_stack_overflow: .tooDeep
      case json_error_invalid_utf8: .invalidUTF8
      case json_error_premature_end_of_input: .endOfInput
      case json_error_end_of_input_expected: .trailingText
      case json_error_null_byte_in_key: .nulInName
      case json_error_duplicate_key: .duplicateName
      case json_error_numeric_overflow: .numericOverflow
      default: .syntax
      }
    return JSONFailure(kind: kind, message: message, position: Int(error.position))
  }
}

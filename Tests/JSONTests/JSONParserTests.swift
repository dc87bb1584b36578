// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import Testing

struct JSONParserTests {
  @Test(arguments: [
    ("40", JSONValue.integer(40)),
    ("-5", .integer(-5)),
    ("0", .integer(0)),
    ("-0", .integer(0)),
    (" 7\n", .integer(7)),
    ("40.5", .number(40.5)),
    ("1e3", .number(1000)),
    ("1.0", .number(1)),
    ("true", .boolean(true)),
    ("null", .null),
    (#""on""#, .string("on")),
    (#""é\n\u00e9\ud83d\ude00""#, .string("é\né😀")),
    ("[]", .array([])),
    ("[1,[2]]", .array([.integer(1), .array([.integer(2)])])),
    ("{}", .object([])),
  ])
  func `any value is allowed at the top level`(text: String, value: JSONValue) throws {
    #expect(try JSONParser.parse(text) == value)
  }

  @Test(arguments: [
    ("999999999999999999", JSONValue.integer(999_999_999_999_999_999)),
    ("9223372036854775807", .integer(.max)),
    ("-9223372036854775808", .integer(.min)),
    ("9223372036854775808", .number(9_223_372_036_854_775_808)),
    ("-18446744073709551616", .number(-18_446_744_073_709_551_616)),
    (
      #"{"a":9223372036854775807,"b":18446744073709551615,"c":"18446744073709551615"}"#,
      .object([
        .init("a", .integer(.max)), .init("b", .number(18_446_744_073_709_551_616)),
        .init("c", .string("18446744073709551615")),
      ])
    ),
  ])
  func `integers are exact within 64 bits and numbers beyond`(text: String, value: JSONValue) throws
  {
    #expect(try JSONParser.parse(text) == value)
  }

  @Test func `objects keep the order of their members`() throws {
    let names = (0..<200).map { "member\($0 * 7919 % 200)" }
    let text = "{" + names.map { "\"\($0)\":1" }.joined(separator: ",") + "}"
    guard case .object(let members) = try JSONParser.parse(text) else {
      Issue.record("not an object")
      return
    }
    #expect(members.map(\.name) == names)
  }

  @Test(arguments: [
    ("", "expected a JSON value, found nothing", 1, 1),
    (" \n ", "expected a JSON value, found nothing", 1, 1),
    ("{", "the text ends too early: string or '}' expected near end of file", 1, 1),
    ("[1,\n 2", "the text ends too early: ']' expected near end of file", 2, 2),
    (#"{"a":1,"a":2}"#, #"the same member comes twice: duplicate object key near '"a"'"#, 1, 10),
    ("1 2", "only one JSON value is allowed: end of file expected near '2'", 1, 3),
    ("[\"é\", x]", "invalid token near 'x'", 1, 7),
    ("01", "invalid token near '0'", 1, 1),
    ("-", "invalid token near '-'", 1, 1),
    ("nan", "invalid token near 'nan'", 1, 3),
    ("Infinity", "invalid token near 'Infinity'", 1, 8),
    ("1e999", "the number is too large: real number overflow near '1e999'", 1, 5),
    (
      "[18446744073709551615, x]", "invalid token near 'x'", 1, 24
    ),
    (#"{"a\u0000b":1}"#, "a member's name may not contain NUL", 1, 11),
    ("\"\u{1}\"", "control character 0x1 near '\"'", 1, 1),
    ("\"a\0b\"", "a NUL byte is not allowed in JSON text", 1, 3),
    ("1\0", "a NUL byte is not allowed in JSON text", 1, 2),
    ("1\0garbage", "a NUL byte is not allowed in JSON text", 1, 2),
    (#""\ud800""#, #"invalid Unicode '\uD800' near '"\ud800"'"#, 1, 8),
  ])
  func `text that is not JSON is refused with its position`(
    text: String,
    message: String,
    line: Int,
    column: Int
  ) {
    #expect(throws: JSONParseError(message: message, line: line, column: column)) {
      try JSONParser.parse(text)
    }
  }

  @Test(arguments: [
    [0x22, 0xFF, 0x22], [0x22, 0x61, 0xC3, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22],
  ])
  func `text that is not UTF-8 is refused`(bytes: [UInt8]) {
    let error = #expect(throws: JSONParseError.self) { try JSONParser.parse(bytes.span) }
    #expect(error?.message.hasPrefix("text is not UTF-8") == true)
  }

  @Test func `an escaped NUL is carried in strings and never cuts them short`() throws {
    let value = try JSONParser.parse(#"["a\u0000b"]"#)
    #expect(value == .array([.string("a\0b")]))
    #expect(JSONWriter.text(value) == #"["a\u0000b"]"#)
  }

  @Test(arguments: [("[", "]"), (#"{"a":"#, "}")])
  func `nesting is bounded`(open: String, close: String) throws {
    let deep = JSONParser.maximumDepth
    func nested(_ depth: Int) -> String {
      String(repeating: open, count: depth) + "1" + String(repeating: close, count: depth)
    }
    _ = try JSONParser.parse(nested(deep))
    for depth in [deep + 1, 10_000] {
      #expect(
        throws: JSONParseError(
          message: "arrays and objects nest deeper than 256",
          line: 1,
          column: deep * open.count + 1
        )
      ) { try JSONParser.parse(nested(depth)) }
    }
  }

  @Test func `a string of ten megabytes is read completely`() throws {
    let text = String(repeating: "0123456789", count: 1_000_000)
    #expect(try JSONParser.parse("\"\(text)\"") == .string(text))
  }

  @Test func `a written value reads back equal`() throws {
    let value: JSONValue = .object([
      "number": 40.1, "integer": 42, "text": "a\"\\\u{1}\u{7f}é", "none": nil,
      "list": [1, 2.5, true], "nested": .object(["z": 1, "a": 2]),
    ])
    #expect(try JSONParser.parse(JSONWriter.text(value)) == value)
  }

  @Test(
    arguments: [
      (#"{"key":"a/b","set":40}"#, .object([.init("key", "a/b"), .init("set", 40)])),
      ("\t{ \"a\" : -1.25 ,\n\"b\":true}\r", .object([.init("a", -1.25), .init("b", true)])),
      (#"{"a":null,"b":false,"":""}"#, .object(["a": nil, "b": false, "": ""])),
      (#"{"a":-0,"b":123456789012345}"#, .object(["a": 0, "b": 123_456_789_012_345])),
      (#"{"a":1234567890123456,"b":0.1}"#, .object(["a": 1_234_567_890_123_456, "b": 0.1])),
      (#"{"a":1234567890.123456789}"#, .object(["a": .number(1_234_567_890.123456789)])),
      (#"{"a":123456789012345.5}"#, .object(["a": .number(123_456_789_012_345.5)])),
      (#"{"a":1e3,"b":2.5E-1}"#, .object(["a": .number(1000), "b": .number(0.25)])),
      (#"{"a":"\u00e9\"","b":"é"}"#, .object(["a": "é\"", "b": "é"])),
      (#"{"a":{"b":[1]}}"#, .object(["a": .object(["b": [1]])])),
      ("{}", .object([])),
    ] as [(String, JSONValue)]
  )
  func `objects are read alike, plain or not`(text: String, value: JSONValue) throws {
    #expect(try JSONParser.parse(text) == value)
  }

  @Test(
    arguments: [
      #"{"a":1,"a":2}"#, #"{"a":01}"#, #"{"a":1.}"#, #"{"a":.5}"#, #"{"a":-}"#, #"{"a":+1}"#,
      #"{"a":1 2}"#, #"{"a":1,}"#, #"{"a" 1}"#, #"{a:1}"#, #"{"a":tru}"#, #"{"a":nulls}"#,
      #"{"a":"#,
      #"{"a"#, #"{"a":1}x"#, #"{"a":1.2.3}"#, #"{"a":1,"b"}"#, "{\"a\":\"\n\"}", "{\"a\":\"\\x\"}",
      "{", "{,}",
    ]
  )
  func `an object with a mistake is refused`(text: String) {
    #expect(throws: JSONParseError.self) { try JSONParser.parse(text) }
  }

  @Test func `an object of many members is read whole`() throws {
    let text = "{" + (0..<40).map { #""m\#($0)":\#($0)"# }.joined(separator: ",") + "}"
    guard case .object(let members) = try JSONParser.parse(text) else {
      Issue.record("no object")
      return
    }
    #expect(members.map(\.name) == (0..<40).map { "m\($0)" })
    #expect(members.map(\.value) == (0..<40).map { .integer($0) })
  }

  @Test(arguments: [
    ("12.30", #""12.30""#), (" -1.0e3 ", #""-1.0e3""#),
    ("12345678901234567890", #""12345678901234567890""#),
    (#"{"1":[1, "2.0", 3.00, true]}"#, #"{"1":["1","2.0","3.00",true]}"#),
    (#""\"1.0""#, #""\"1.0""#),
  ])
  func `numbers can be read as they are written`(text: String, expected: String) throws {
    let value = try JSONParser.parseQuotingNumbers(text.utf8.span)
    #expect(JSONWriter.text(value) == expected)
  }
}

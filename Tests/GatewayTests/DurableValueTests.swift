// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import GatewayCore
import JSON
import Testing

@testable import Gateway

/// The bytes that the journal stores of a value.
@Suite struct DurableValueTests {
  private static func full(_ value: JSONValue) -> DurableValue {
    var stored = DurableValue(value: value, id: .string("01JQ"))
    stored.source = "cli \"quoted\" \u{1F4A1}"
    stored.options = [
      .init("transition", .number(1.5)), .init("deep", .object(["a": .array([.null])])),
    ]
    stored.responseTopic = "settle/reply/x y"
    stored.correlationData = [0, 1, 0x7F, 0x80, 0xFF]
    return stored
  }

  private static func isSame(_ left: DurableValue, _ right: DurableValue) -> Bool {
    left.value == right.value && left.id == right.id && left.source == right.source
      && left.options == right.options && left.responseTopic == right.responseTopic
      && left.correlationData == right.correlationData
  }

  @Test(arguments: [
    JSONValue.integer(0), .integer(-1), .integer(.max), .integer(.min), .number(0.1),
    .number(-2.5e-7), .number(1e300), .boolean(true), .boolean(false), .string(""),
    .string("a\"b\\c\n\u{7F}\u{1F600}"), .null, .array([.integer(1), .string("x")]),
    .object(["hue": .number(0.5), "saturation": .integer(1)]),
  ])
  func `a value of any kind is read as it was written`(value: JSONValue) throws {
    let bare = DurableValue(value: value, id: .integer(7))
    #expect(Self.isSame(try #require(DurableValue(bare.bytes)), bare))
    let full = Self.full(value)
    #expect(Self.isSame(try #require(DurableValue(full.bytes)), full))
  }

  @Test func `the requester is read as far as it outlives a process`() throws {
    let origin = try #require(DurableValue(Self.full(.integer(1)).bytes)).origin
    #expect(origin.id == .string("01JQ"))
    #expect(origin.source == "cli \"quoted\" \u{1F4A1}")
    #expect(origin.responseTopic == "settle/reply/x y")
    #expect(origin.correlationData == [0, 1, 0x7F, 0x80, 0xFF])
    #expect(origin.replyTo == 0)
  }

  @Test(arguments: [
    "", " ", "{", "{}", "[]", "null", "7", #"{"value":1}"#, #"{"id":1}"#, #"{"value":1,"id":2"#,
    #"{"value":1,"id":2}}"#, "\u{0}", #"{"value":,"id":1}"#,
  ])
  func `anything else is no value`(text: String) {
    #expect(DurableValue(Array(text.utf8)) == nil)
  }

  @Test func `members that are damaged or unknown are left out`() throws {
    let text =
      #"{"value":1,"id":2,"source":3,"options":[],"reply":4,"correlation":"0g","more":5}"#
    let stored = try #require(DurableValue(Array(text.utf8)))
    #expect(Self.isSame(stored, DurableValue(value: .integer(1), id: .integer(2))))
    let odd = #"{"value":1,"id":2,"correlation":"abc"}"#
    #expect(DurableValue(Array(odd.utf8))?.correlationData == nil)
  }

  @Test func `no truncated value is read`() {
    let bytes = Self.full(.integer(40)).bytes
    for count in bytes.indices { #expect(DurableValue(Array(bytes[..<count])) == nil) }
  }

  /// Bytes that JSON gives a meaning, and bytes that no text has.
  private static let replacements: [UInt8] =
    Array("\"\\{}[],:0-.e ntuf".utf8) + [0, 0x1F, 0x7F, 0x80, 0xC3, 0xE0, 0xF0, 0xFF]

  @Test func `a damaged byte never traps, and what is read can be written`() throws {
    let bytes = Self.full(.string("on")).bytes
    var readable = 0
    for place in bytes.indices {
      for byte in Self.replacements {
        var damaged = bytes
        damaged[place] = byte
        guard let stored = DurableValue(damaged) else { continue }
        readable += 1
        let again = try #require(DurableValue(stored.bytes))
        #expect(again.bytes == stored.bytes)  // 1.0 is written as 1.
      }
    }
    #expect(readable > bytes.count)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import JSON
import Testing
import Values

struct ControlRequestTests {
  private static func request(
    _ operation: ControlRequest.Operation,
    _ key: String,
    _ change: (inout ControlRequest) -> Void = { _ in }
  ) -> ControlRequest {
    var request = ControlRequest(operation, key: key)
    change(&request)
    return request
  }

  @Test(arguments: [
    (#"{"key":"desk-lamp/brightness","set":40}"#, request(.set(40), "desk-lamp/brightness")),
    (#"{"key":"a/b","value":"on"}"#, request(.set("on"), "a/b")),
    (#"{"key":"a/b","set":null}"#, request(.set(nil), "a/b")),
    (
      #"{"key":"a/b","set":{"r":1,"g":2}}"#,
      request(.set(.object(["r": 1, "g": 2])), "a/b")
    ),
    (#"{"key":"a/b","step":-5}"#, request(.step(-5), "a/b")),
    (#"{"step":0.5,"key":"a/b"}"#, request(.step(0.5), "a/b")),
    (#"{"key":"a/b","step":"-10%"}"#, request(.step(.percent(-10)), "a/b")),
    (#"{"key":"lamp","set":{"a":1}}"#, request(.set(.object(["a": 1])), "lamp")),
    (#"{"key":"a/b","toggle":true}"#, request(.toggle, "a/b")),
    (#"{"key":"a/b","cancel":true}"#, request(.cancel, "a/b")),
    (#"{"key":"a/*","flush":true}"#, request(.flush, "a/*")),
    (#"{"flush":"*"}"#, request(.flush, "*")),
    (#"{"cancel":"desk-?/*"}"#, request(.cancel, "desk-?/*")),
    (#"{"get":"*"}"#, request(.get, "*")),
    (#"{"pending":"slow/a/b/in"}"#, request(.pending, "slow/a/b/in")),
    (#"{"watch":"*","id":"w"}"#, request(.watch, "*") { $0.id = "w" }),
    (
      #"{"key":"a/b","set":1,"id":"x","source":"cli","now":true,"ttl":"1h","wait":"sent","at":10}"#,
      request(.set(1), "a/b") {
        $0.id = "x"
        $0.source = "cli"
        $0.now = true
        $0.ttl = .seconds(3600)
        $0.wait = .sent
        $0.at = 10
      }
    ),
    (#"{"key":"a/b","set":1,"id":7}"#, request(.set(1), "a/b") { $0.replyID = 7 }),
    (#"{"key":"a/b","set":1,"wait":true}"#, request(.set(1), "a/b") { $0.wait = .confirmed }),
    (
      #"{"devices":"desk*","complete":"step"}"#,
      request(.devices, "desk*") { $0.completion = .step }
    ),
    (#"{"key":"a/b","set":1,"wait":false,"now":false}"#, request(.set(1), "a/b")),
    (#"{"key":"a/b","set":1,"id":null,"ttl":null,"wait":null}"#, request(.set(1), "a/b")),
    (
      #"{"key":"a/b","set":1,"ttl":"300ms"}"#,
      request(.set(1), "a/b") { $0.ttl = .milliseconds(300) }
    ),
  ])
  func `the grammar has these lines`(line: String, request: ControlRequest) throws {
    #expect(try ControlRequest(line: line.utf8.span) == request)
    #expect(try ControlRequest(line: request.line.span) == request)
  }

  @Test(arguments: [
    ("", "syntax", "not JSON: expected a JSON value, found nothing (column 1)"),
    (
      "{", "syntax",
      "not JSON: the text ends too early: string or '}' expected near end of file (column 1)"
    ),
    (
      #"{"key":"a/b","set":1,"set":2}"#, "syntax",
      #"not JSON: the same member comes twice: duplicate object key near '"set"' (column 26)"#
    ),
    (
      "40", "bad_type",
      #"a request is an object, such as {"key":"desk-lamp/brightness","set":40}; found a number"#
    ),
    (
      #"{"key":"a/b","sett":1}"#, "unknown_member",
      #"unknown member "sett"; did you mean "set"?"#
    ),
    (#"{"key":"a/b","brightness":1}"#, "unknown_member", #"unknown member "brightness""#),
    (
      #"{"key":"a/b"}"#, "missing_operation",
      "nothing to do: one of set, step, toggle, scene, cancel, flush, get, pending, watch, describe, record,"
        + " reload, status, log or devices is needed"
    ),
    (
      #"{"key":"a/b","set":1,"step":2}"#, "several_operations",
      "one operation per line; found set, step"
    ),
    (
      #"{"key":"a/b","set":1,"value":1}"#, "several_operations",
      "one operation per line; found set, value"
    ),
    (#"{"set":1}"#, "missing_key", #""set" needs a "key", such as "key":"desk-lamp/brightness""#),
    (#"{"key":5,"set":1}"#, "bad_type", #""key" must be a text; found a number"#),
    (
      #"{"key":"a/b","step":"+5"}"#, "bad_type",
      #""step" must be a number; found a text; did you mean 5, without quotes?"#
    ),
    (#"{"key":"a/b","toggle":1}"#, "bad_type", #""toggle" must be true; found a number"#),
    (#"{"key":"a/b","toggle":false}"#, "bad_type", #""toggle" must be true; found false"#),
    (#"{"reload":false}"#, "bad_type", #""reload" must be true; found false"#),
    (
      #"{"flush":true}"#, "missing_key",
      #""flush" needs a "key", such as "key":"desk-lamp/brightness""#
    ),
    (
      #"{"key":"a/b","flush":"*"}"#, "several_operations",
      #""flush" already has a pattern; remove "key", or set it to true"#
    ),
    (
      #"{"key":"a/b","get":"*"}"#, "misplaced_member",
      #""key" does not go with "get"; write the pattern there: {"get":"desk-lamp/*"}"#
    ),
    (
      #"{"get":true}"#, "bad_type",
      #""get" must be a key or a pattern, such as "desk-lamp/*" or "*"; found true or false"#
    ),
    (
      #"{"key":"a/b","cancel":true,"now":true}"#, "misplaced_member",
      #""now" does not go with "cancel""#
    ),
    (
      #"{"key":"a/b","set":1,"ttl":60}"#, "bad_type",
      #""ttl" must be a text with a unit; found a number; did you mean "60s" or "60ms"?"#
    ),
    (
      #"{"key":"a/b","set":1,"ttl":"60"}"#, "bad_value",
      #""ttl" needs a unit, found "60"; did you mean "60s" or "60ms"?"#
    ),
    (
      #"{"key":"a/b","set":1,"ttl":"soon"}"#, "bad_value",
      #""ttl" must be a duration such as 300ms, 2s, 5m or 1h, found "soon""#
    ),
    (
      #"{"key":"a/b","set":1,"wait":"confirm"}"#, "bad_value",
      #""wait" must be "sent" or "confirmed"; found "confirm"; did you mean "confirmed"?"#
    ),
    (
      #"{"devices":"*","complete":"steps"}"#, "bad_value",
      #""complete" must be one of any, step, toggle, set, area; found "steps"; did you mean "step"?"#
    ),
    (
      #"{"get":"*","complete":"step"}"#, "misplaced_member",
      #""complete" does not go with "get""#
    ),
    (
      #"{"key":"a/b","set":1,"complete":"step"}"#, "misplaced_member",
      #""complete" does not go with "set""#
    ),
    (
      #"{"key":"a/b","set":1,"wait":1}"#, "bad_type",
      #""wait" must be "sent" or "confirmed"; found a number"#
    ),
    (
      #"{"key":"a/b","set":1,"at":-1}"#, "bad_value",
      #""at" is a number of milliseconds from 0; found -1.0"#
    ),
    (
      #"{"key":"a/b","set":1,"now":"yes"}"#, "bad_type",
      #""now" must be true or false; found a text"#
    ),
    (
      #"{"key":"a/b","set":1,"id":[1]}"#, "bad_type",
      #""id" must be a text or a number; found a list"#
    ),
    (#"{"key":"a/b","set":1,"id":""}"#, "bad_type", #""id" must not be empty"#),
  ])
  func `an invalid line is refused with the reason`(line: String, code: String, message: String) {
    let error = #expect(throws: GrammarError.self) { try ControlRequest(line: line.utf8.span) }
    #expect(error?.code == code)
    #expect(error?.message == message)
  }

  @Test(arguments: [
    (
      "desk-lamp",
      "a key is device/property, such as desk-lamp/brightness; found \"desk-lamp\"; to set"
        + " several properties of a device, \"set\" is an object: {\"brightness\":40}"
    ),
    ("a/b/c", "a key is device/property, such as desk-lamp/brightness; found \"a/b/c\""),
    ("/b", "a key is device/property, such as desk-lamp/brightness; found \"/b\""),
    ("", "a key must not be empty"),
    ("a/+", "a key must not contain \"+\"; the wildcards of patterns are * and ?"),
    ("#", "a key must not contain \"#\"; the wildcards of patterns are * and ?"),
    (
      "a/*",
      "a key names one property, and \"a/*\" is a pattern;"
        + " patterns are allowed in get, pending, watch, flush and cancel"
    ),
    ("a/b\\u0000c", "a key must not contain control characters; found \\0"),
    ("a/\\n", "a key must not contain control characters; found \\n"),
    (
      String(repeating: "k", count: 513),
      "a key has at most 512 bytes; found 513"
    ),
  ])
  func `a key that cannot name a property is refused`(key: String, message: String) {
    let line = #"{"key":"\#(key)","set":1}"#
    let error = #expect(throws: GrammarError.self) { try ControlRequest(line: line.utf8.span) }
    #expect(error?.code == "bad_key")
    #expect(error?.message == message)
  }

  @Test(arguments: ["k", "a/b/c", "Küche/Licht", "1"])
  func `without devices any text is a key`(key: String) throws {
    let line = #"{"key":"\#(key)","set":1}"#
    #expect(try ControlRequest(line: line.utf8.span, keys: .any).key == key)
  }

  @Test(arguments: [#"{"get":"a/+"}"#, #"{"flush":""}"#, #"{"cancel":"a\u0001"}"#])
  func `patterns keep to the same characters`(line: String) {
    let error = #expect(throws: GrammarError.self) { try ControlRequest(line: line.utf8.span) }
    #expect(error?.code == "bad_key")
  }

  @Test(arguments: [
    (#"{"id":"x","sett":1}"#, JSONValue.string("x")),
    (#"{"id":7,"key":"a/b"}"#, .integer(7)),
    (#"{"id":1.5,"key":"a/b"}"#, .number(1.5)),
  ])
  func `an error has the id exactly as received`(line: String, id: JSONValue) {
    let error = #expect(throws: GrammarError.self) { try ControlRequest(line: line.utf8.span) }
    #expect(error?.replyID == id)
  }

  @Test(arguments: [("id", 256), ("source", 64)])
  func `the longest texts are counted in characters`(member: String, limit: Int) throws {
    func line(_ count: Int) -> [UInt8] {
      let text = String(repeating: "🎚", count: count)
      return Array(#"{"key":"a/b","set":1,"\#(member)":"\#(text)"}"#.utf8)
    }
    _ = try ControlRequest(line: line(limit).span)
    let error = #expect(throws: GrammarError.self) {
      try ControlRequest(line: line(limit + 1).span)
    }
    let message = #""\#(member)" has at most \#(limit) characters; found \#(limit + 1)"#
    #expect(error?.message == message)
  }

  @Test func `text that is not UTF-8 is refused`() {
    let error = #expect(throws: GrammarError.self) {
      try ControlRequest(line: (Array(#"{"key":"a/"#.utf8) + [0xFF, 0x22, 0x7D]).span)
    }
    #expect(error?.code == "syntax")
  }

  @Test func `a long unknown member is not echoed whole`() {
    let line = #"{"\#(String(repeating: "x", count: 5000))":1}"#
    let error = #expect(throws: GrammarError.self) { try ControlRequest(line: line.utf8.span) }
    #expect((error?.message.count ?? 0) < 100)
  }

  @Test(arguments: [
    (#"{"key":"a/b","set":12.30}"#, #"{"key":"a/b","set":"12.30"}"#),
    (#"{"key":"a/b","value":1e3}"#, #"{"key":"a/b","set":"1e3"}"#),
    (#"{"key":"a/b","set":12.3}"#, #"{"key":"a/b","set":12.3}"#),
    (
      #"{"key":"a","set":{"b":1.0,"c":1,"d":"1.0"}}"#,
      #"{"key":"a","set":{"b":"1.0","c":1,"d":"1.0"}}"#
    ),
    (#"{"key":"a/b","set":{"x":0.30,"y":0.3}}"#, #"{"key":"a/b","set":{"x":0.3,"y":0.3}}"#),
  ])
  func `a number to set is passed on as it was written`(line: String, passed: String) throws {
    let request = try ControlRequest(line: line.utf8.span)
    #expect(String(decoding: request.line, as: UTF8.self) == passed)
  }
}

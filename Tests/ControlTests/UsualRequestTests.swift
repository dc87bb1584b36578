// Settle
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Control

/// The short way of reading most changes says what the long one says.
@Suite struct UsualRequestTests {
  static let lines = [
    #"{"key":"dev3/level","set":53,"now":true}"#,
    #" { "set" : -1.5 , "key" : "dev3/level" , "id" : "a" , "source" : "app" } "#,
    #"{"key":"dev3/level","set":"heat","id":7,"now":false}"#,
    #"{"key":"dev3/level","set":null}"#,
    #"{"key":"dev3/level","set":true,"id":null}"#,
    #"{"key":"dev3/level","set":1,"id":""}"#,
    #"{"key":"dev3/level","set":1,"id":1.5}"#,
    #"{"key":"dev3/level","set":1,"id":true}"#,
    #"{"key":"dev3/level","set":1,"now":"yes"}"#,
    #"{"key":"dev3/level","set":1,"now":null}"#,
    #"{"key":"dev3/level","set":1,"source":7}"#,
    #"{"key":"dev3/level","set":1,"ttl":"5s","wait":"sent"}"#,
    #"{"key":"dev3/level","set":1,"set":2}"#,
    #"{"key":"dev3/level","set":1,"step":2}"#,
    #"{"key":"dev3/level","set":1,"longername":2}"#,
    #"{"key":"dev3/level","now":true}"#,
    #"{"set":1}"#,
    #"{"key":"dev*/level","set":1}"#,
    #"{"key":"dev3","set":1}"#,
    #"{"key":7,"set":1}"#,
    #"{"key":"dev3/level","set":{"r":1}}"#,
    #"{"key":"dev3/level","set":1} x"#,
    #"{"key":"dev3/level","set":1"#,
    #"{"key":"dev3/level","source":""# + String(repeating: "s", count: 65) + #"","set":1}"#,
    #"{"key":"dev3/level","id":""# + String(repeating: "i", count: 257) + #"","set":1}"#,
  ]

  @Test(arguments: lines) func `both ways read the same request or name the same mistake`(
    line: String
  ) {
    #expect(Self.short(line) == Self.long(line))
  }

  private static func short(_ line: String) -> Result<ControlRequest, GrammarError> {
    do throws(GrammarError) {
      return .success(try ControlRequest(line: line.utf8.span))
    } catch {
      return .failure(error)
    }
  }

  private static func long(_ line: String) -> Result<ControlRequest, GrammarError> {
    do throws(GrammarError) {
      return .success(try ControlRequest.any(line.utf8.span, keys: .deviceProperty))
    } catch {
      return .failure(error)
    }
  }
}

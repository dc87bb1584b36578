// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Testing

/// What a message on a state topic says of a property.
@Suite struct StateSourceTests {
  private static func words(_ reading: StateSource.Reading) -> String {
    switch reading {
    case .value(let value): JSONWriter.text(value)
    case .nothing: "nothing"
    case .unreadable: "unreadable"
    }
  }

  private static let object: JSONValue = .object(["level": 40, "power": nil])

  @Test(
    arguments: [
      ("/state", .object(["state": "offline"]), false), ("/state", "offline", false),
      ("/state", "online", true), ("/state", "other", nil), ("/state", .object([]), nil),
      ("", "offline", false),
    ] as [(String, JSONValue, Bool?)]
  )
  func `an availability in JSON may be a plain word too`(
    pointer: String,
    document: JSONValue,
    expected: Bool?
  ) throws {
    let source = AvailabilitySource(
      topic: "t",
      value: try #require(JSONPointer(pointer)),
      online: "online",
      offline: "offline"
    )
    #expect(source.isOnline(in: document) == expected)
  }

  @Test(
    arguments: [
      ("", "abc", #""abc""#), ("", object, #"{"level":40,"power":null}"#),
      ("/level", object, "40"), ("/power", object, "null"),
      // A device may report some of its properties in a message.
      ("/other", object, "nothing"), ("/other", [1], "nothing"), ("/level", nil, "nothing"),
      // There can be no member in a word, which is what a payload is that is no JSON.
      ("/level", "abc", "unreadable"), ("/level", 40, "unreadable"), ("/level", true, "unreadable"),
    ] as [(String, JSONValue, String)]
  )
  func `a message has a value, none, or cannot have one`(
    pointer: String,
    document: JSONValue,
    expected: String
  ) throws {
    let source = StateSource(topic: "t", value: try #require(JSONPointer(pointer)))
    #expect(Self.words(source.reading(of: document)) == expected)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import FoundationEssentials
import JSON
import LastOut
import Testing

/// The contract's timelines, which live with the queue's tests.
enum Fixture {
  /// One expected or actual run, in an order that does not depend on ties.
  struct Run: Hashable, Comparable, CustomStringConvertible {
    var at: Double
    var key: String
    var value: JSONValue

    init(at: Moment, key: String, value: JSONValue) {
      self.at = Double(at.nanoseconds) / 1_000_000
      self.key = key
      self.value = value
    }

    init(_ json: JSONValue) {
      at = json["at"]?.double ?? -1
      key = json["key"]?.string ?? "?"
      value = json["value"] ?? .null
    }

    var description: String { "\(at) \(key)=\(JSONWriter.text(value))" }

    static func < (left: Run, right: Run) -> Bool {
      (left.at, left.key) < (right.at, right.key)
    }
  }

  static func lines(of name: String) throws -> [JSONValue] {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let file = folder.appending(path: "LastOutTests/Fixtures/\(name)")
    return try String(contentsOf: file, encoding: .utf8)
      .split(separator: "\n")
      .map { try JSONParser.parse(String($0)) }
  }

  static func policy(of timeline: JSONValue) throws -> Policy {
    let policy = try #require(timeline["policy"])
    let delay = try #require(policy["delay"]?.double)
    return Policy(
      delay: .milliseconds(delay),
      maxWait: policy["max_wait"]?.double.map { .milliseconds($0) },
      leading: policy["leading"] == true
    )
  }
}

extension JSONValue {
  /// The elements of an array; empty for any other value.
  var elements: [JSONValue] {
    if case .array(let elements) = self { elements } else { [] }
  }
}

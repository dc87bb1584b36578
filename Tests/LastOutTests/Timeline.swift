// Settle
// SPDX-License-Identifier: Apache-2.0

import Foundation
import LastOut
import LastOutTesting
import Testing

/// One line of a fixture file: events, and the runs they must lead to.
struct Timeline: Sendable, CustomTestStringConvertible {
  struct Failure: Error {
    let what: String
  }

  let id: String
  let player: TimelinePlayer<String>
  let events: [TimelinePlayer<String>.Event]
  let reactions: [String: [TimelinePlayer<String>.Step]]
  let expected: [String]

  var testDescription: String { id }

  /// The runs of a queue of values, sorted where no order is promised: between keys of one instant.
  func play() -> [String] {
    player.play(events) { reactions["\($0.key)=\($0.value)"] ?? [] }
      .map { Self.line($0.at.wholeNanoseconds / 1_000_000, $0.key, $0.value) }
      .sorted()
  }

  /// The same for a queue of closures.
  func playClosures() -> [String] {
    let playback = ClosurePlayback(policy: player.policy, reactions: reactions)
    return playback.play(events)
      .map { Self.line($0.at.wholeNanoseconds / 1_000_000, $0.key, $0.value) }
      .sorted()
  }

  static func read(_ file: String) throws -> [Timeline] {
    let url = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "Fixtures/\(file).ndjson")
    return try String(contentsOf: url, encoding: .utf8).split(separator: "\n").map {
      try Timeline(object: object(JSONSerialization.jsonObject(with: Data($0.utf8))))
    }
  }

  private init(object: [String: Any]) throws {
    id = try Self.get(object, "id")
    let policy = try Self.object(object["policy"] ?? object["config"])
    player = TimelinePlayer(
      policy: Policy(
        delay: .milliseconds(try Self.get(policy, "delay") as Int),
        maxWait: ((policy["max_wait"] ?? policy["maxWait"]) as? Int).map { .milliseconds($0) },
        leading: try Self.get(policy, "leading")
      )
    )
    events = try (Self.get(object, "events") as [[String: Any]]).map {
      TimelinePlayer.Event(at: .milliseconds(try Self.get($0, "at") as Int), try Self.step($0))
    }
    var reactions: [String: [TimelinePlayer<String>.Step]] = [:]
    for reaction in object["reactions"] as? [[String: Any]] ?? [] {
      let on = try Self.object(reaction["on"])
      let key: String = try Self.get(on, "key")
      reactions["\(key)=\(Self.text(on["value"]))"] =
        try (Self.get(reaction, "do") as [[String: Any]]).map(Self.step)
    }
    self.reactions = reactions
    expected = try (Self.get(object, "expect") as [[String: Any]]).map {
      Self.line(
        Int64(try Self.get($0, "at") as Int),
        try Self.get($0, "key"),
        Self.text($0["value"])
      )
    }
    .sorted()
  }

  private static func step(_ event: [String: Any]) throws -> TimelinePlayer<String>.Step {
    let key = event["key"] as? String ?? "*"
    let operations = ["set", "cancel", "flush"].filter { event[$0] != nil }
    switch event["op"] as? String ?? operations.first {
    case "set", "enqueue":
      return .set(
        key: key,
        value: text(event["set"] ?? event["value"]),
        delay: (event["delay"] as? Int).map { .milliseconds($0) }
      )
    case "cancel": return key == "*" ? .cancelAll : .cancel(key: key)
    case "flush", "flushAll": return key == "*" ? .flushAll : .flush(key: key)
    case let unknown: throw Failure(what: "unknown operation \(unknown ?? "none")")
    }
  }

  private static func line(_ at: Int64, _ key: String, _ value: String) -> String {
    "\(at) \(key)=\(value)"
  }

  private static func text(_ value: Any?) -> String {
    guard let value else { return "absent" }
    return "\(value)"
  }

  private static func get<T>(_ object: [String: Any], _ key: String) throws -> T {
    guard let value = object[key] as? T else { throw Failure(what: "no \(key) in \(object)") }
    return value
  }

  private static func object(_ value: Any?) throws -> [String: Any] {
    guard let object = value as? [String: Any] else { throw Failure(what: "no object") }
    return object
  }
}

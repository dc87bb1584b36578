// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import JSON
import LastOut
import Values
@testable import Screen

/// A screen with the properties of four devices, and ways to press its keys.
struct Stage {
  static let start = Moment(nanoseconds: 1_000_000_000)

  var screen: ControlScreen
  var now = Stage.start

  /// Creates a connected screen with properties and their values.
  init(columns: Int = 80, rows: Int = 24, facts: [PropertyRow] = Stage.facts) {
    screen = ControlScreen(name: "me", size: ScreenSize(columns: columns, rows: rows))
    connect(facts)
  }

  static let lamp = property("desk-lamp/brightness", .integer(rule(0...254, 1)), 300, 2000)
  static let facts: [PropertyRow] = [
    property("desk-lamp/power", .boolean, 20),
    lamp,
    property("boiler/target_temperature", .number(rule(5...30, 0.5, "°C")), 800) {
      $0.confirmWithin = .seconds(10)
    },
    property("boiler/mode", .choice(["off", "heat", "auto"]), 20) {
      $0.urgent = ["off"]
      $0.ends = ["boiler/target_temperature"]
    },
    property("blind/position", .integer(rule(0...100, 1, "%")), 500),
    property("blind/command", .action(["OPEN", "CLOSE", "STOP"]), 0) {
      $0.urgent = ["OPEN", "CLOSE", "STOP"]
      $0.ends = ["blind/position"]
    },
    property("strip/color", .color, 300, 2000),
    property("strip/gain", .number(NumberRule(range: 0...1)), 300, 2000),
    property("strip/speed", .number(rule(0...10, 1)), 200, 200) {
      $0.policy.leading = true
      $0.policy.minInterval = .milliseconds(200)
    },
  ]

  static let targets: [(String, JSONValue?)] = [
    ("desk-lamp/power", true), ("desk-lamp/brightness", 100), ("boiler/target_temperature", 21),
    ("boiler/mode", "heat"), ("blind/position", 30), ("strip/color", "#ff8800"),
    ("strip/gain", 0.5),
  ]

  static func property(
    _ key: String,
    _ kind: ValueKind,
    _ delay: Int,
    _ maxWait: Int? = nil,
    _ change: (inout PropertyRow) -> Void = { _ in }
  ) -> PropertyRow {
    let names = ["desk-lamp": "Desk lamp", "boiler": "Boiler", "blind": "Blind", "strip": "Strip"]
    let device = String(key.prefix { $0 != "/" })
    var row = PropertyRow(
      key: key,
      deviceName: names[device] ?? device,
      kind: kind,
      policy: .init(
        delay: .milliseconds(delay),
        maxWait: maxWait.map { .milliseconds($0) }
      )
    )
    row.confirmWithin = .seconds(5)
    change(&row)
    return row
  }

  private static func rule(
    _ range: ClosedRange<Double>,
    _ step: Double,
    _ unit: String? = nil
  ) -> NumberRule {
    NumberRule(range: range, step: step, unit: unit)
  }

  /// Connects the screen and answers its requests.
  mutating func connect(_ facts: [PropertyRow] = Stage.facts) {
    screen.connected(at: now)
    _ = screen.dequeueRequests()
    screen.receive(.described(facts, id: "describe"), at: now)
    let rows = Self.targets.map { key, value in
      TargetRow(key: key, target: value, actual: value, phase: nil, ageMilliseconds: nil)
    }
    screen.receive(.targets(rows, id: "get"), at: now)
    screen.receive(.pending([], id: "pending"), at: now)
  }

  /// Selects a property.
  mutating func select(_ key: String) {
    screen.press(.home, at: now)
    while screen.list.selectedKey != key { screen.press(.down, at: now) }
  }

  /// Presses a key for each character: `<` `>` are the arrows, `\n` Enter, `\u{1B}` Escape.
  mutating func type(_ keys: String) {
    for character in keys {
      let key: ScreenKey =
        switch character {
        case "<": .left
        case ">": .right
        case "\n": .enter
        case "\u{1B}": .escape
        case "\u{7F}": .backspace
        default: .character(character)
        }
      screen.press(key, at: now)
    }
  }

  mutating func pass(_ milliseconds: Int) {
    now = now.advanced(by: .milliseconds(milliseconds))
    screen.advance(to: now)
  }

  /// Receives the acceptance of a change: the answer and the watched event.
  mutating func accept(_ id: String, _ key: String, _ value: JSONValue) {
    let event = event(id, key, .accepted, value)
    if id.hasPrefix("me-") { screen.receive(.event(event, id: .string(id)), at: now) }
    screen.receive(.watched(event, watch: "watch"), at: now)
  }

  mutating func hear(
    _ phase: Phase,
    _ id: String,
    _ key: String,
    _ value: JSONValue? = nil,
    collapsed: Int = 0,
    reason: String? = nil
  ) {
    var event = event(id, key, phase, value)
    event.collapsed = collapsed
    event.reason = reason
    screen.receive(.watched(event, watch: "watch"), at: now)
  }

  func event(_ id: String, _ key: String, _ phase: Phase, _ value: JSONValue?) -> EventObject {
    EventObject(id: id, key: key, phase: phase, value: value, at: "2026-11-21T08:00:00.123Z")
  }

  /// Dequeues the requested changes, as lines without their identifiers.
  mutating func changes() -> [String] {
    screen.dequeueRequests().filter { $0.source == "control" }.map { request in
      var bare = request
      bare.replyID = nil
      bare.source = nil
      return String(decoding: bare.line, as: UTF8.self)
    }
  }

  /// Dequeues all requests, as lines.
  mutating func requests() -> [String] {
    screen.dequeueRequests().map { String(decoding: $0.line, as: UTF8.self) }
  }

  func row(_ key: String) -> ScreenRow? { screen.rows.first { $0.property.key == key } }

  func texts(_ glyphs: Glyphs = .unicode) -> [String] {
    ScreenRenderer.grid(of: screen, glyphs, at: now).texts
  }

  /// The line of a property, starting at its name, with single spaces.
  func line(_ label: String, _ glyphs: Glyphs = .unicode) -> String {
    let line = texts(glyphs).first { $0.contains(" \(label) ") } ?? ""
    let words = line.split(separator: " ")
    return words.drop { $0 != label }.joined(separator: " ")
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import JSON
@testable import Screen
import Testing
import Values

/// The requests that keys cause.
struct KeyTests {
  private static let changes: [(String, String, [String])] = [
    ("desk-lamp/brightness", ">", [#""set":101"#]),
    ("desk-lamp/brightness", "+", [#""set":101"#]),
    ("desk-lamp/brightness", "=l", [#""set":101"#, #""set":102"#]),
    ("desk-lamp/brightness", "<-h", [#""set":99"#, #""set":98"#, #""set":97"#]),
    ("desk-lamp/brightness", "]", [#""set":110"#]),
    ("desk-lamp/brightness", "[[", [#""set":90"#, #""set":80"#]),
    ("desk-lamp/brightness", "40\n", [#""set":40"#]),
    ("desk-lamp/brightness", "40.4\n", []),
    ("desk-lamp/brightness", "41\u{7F}2\n", [#""set":42"#]),
    ("desk-lamp/brightness", "40\u{1B}", []),
    ("desk-lamp/brightness", "255\n", []),
    ("desk-lamp/brightness", "4,5\n", []),
    ("desk-lamp/brightness", "\n7\n", [#""set":7"#]),
    ("desk-lamp/brightness", "\n\n", []),
    ("boiler/target_temperature", ">>", [#""set":21.5"#, #""set":22"#]),
    ("boiler/target_temperature", "21.7\n", [#""set":21.5"#]),
    ("boiler/mode", ">", [#""set":"auto""#]),
    ("boiler/mode", ">>", [#""set":"auto""#, #""set":"off""#]),
    ("boiler/mode", "<<", [#""set":"off""#, #""set":"auto""#]),
    ("boiler/mode", " ", [#""set":"auto""#]),
    ("desk-lamp/power", " ", [#""set":false"#]),
    ("desk-lamp/power", "  ", [#""set":false"#, #""set":true"#]),
    ("desk-lamp/power", "\n", [#""set":false"#]),
    ("desk-lamp/power", "-", [#""set":false"#]),
    ("desk-lamp/power", "+", []),
    ("blind/command", " ", [#""set":"OPEN""#]),
    ("blind/command", "> ", [#""set":"CLOSE""#]),
    ("blind/command", "< ", [#""set":"STOP""#]),
    ("blind/command", "> <", [#""set":"CLOSE""#]),
    ("strip/color", "\n#00ff00\n", ["\"set\":\"#00ff00\""]),
    ("strip/color", "#0000ff\n", ["\"set\":\"#0000ff\""]),
    ("strip/color", ">", []),
    ("desk-lamp/brightness", "#\n8\n", [#""set":8"#]),
    ("strip/gain", ">", [#""set":0.51"#]),
    ("strip/gain", "]]", [#""set":0.6"#, #""set":0.7"#]),
    ("strip/speed", "+", [#""step":1"#]),
    ("strip/speed", "--", [#""step":-1"#, #""step":-1"#]),
    ("strip/speed", "3\n+", [#""set":3"#, #""set":4"#]),
  ]

  @Test(arguments: changes)
  func `a key requests an absolute value if one is known`(
    key: String,
    keys: String,
    expected: [String]
  ) {
    var stage = Stage()
    stage.select(key)
    stage.type(keys)
    #expect(stage.changes() == expected.map { "{\"key\":\"\(key)\",\($0)}" })
  }

  @Test(arguments: [
    ("blind/position", "blind/command", "STOP"),
    ("blind/command", "blind/command", "STOP"),
    ("boiler/target_temperature", "boiler/mode", "off"),
    ("boiler/mode", "boiler/mode", "off"),
  ])
  func `an exclamation mark sends the stopping value, never the opening one`(
    key: String,
    stopped: String,
    value: String
  ) {
    var stage = Stage()
    stage.select(key)
    stage.type("!")
    #expect(stage.changes() == [#"{"key":"\#(stopped)","set":"\#(value)"}"#])
  }

  @Test func `without a stopping value nothing is sent and a notice is shown`() {
    var stage = Stage()
    stage.select("desk-lamp/brightness")
    stage.type("!")
    #expect(stage.changes() == [])
    #expect(stage.screen.notice?.text == "Desk lamp has nothing that stops it")
  }

  @Test(arguments: [
    ("f", #"{"key":"desk-lamp/brightness","flush":true,"id":"flush"}"#),
    ("F", #"{"key":"*","flush":true,"id":"flush"}"#),
    ("c", #"{"key":"desk-lamp/brightness","cancel":true,"id":"cancel"}"#),
  ])
  func `flush and cancel name their key`(keys: String, line: String) {
    var stage = Stage()
    stage.select("desk-lamp/brightness")
    stage.type(keys)
    #expect(stage.requests() == [line])
  }

  @Test(arguments: [
    ("255\n", "255 is outside 0 to 254"),
    ("1.5\n", "1.5 is not a whole number"),
    ("1.2.3\n", #""1.2.3" is not a number"#),
    ("2,5\n", #""2,5" is not a number; did you mean 2.5?"#),
  ])
  func `invalid input is rejected with the reason`(keys: String, reason: String) {
    var stage = Stage()
    stage.select("desk-lamp/brightness")
    stage.type(keys)
    #expect(stage.screen.notice?.text == reason)
    #expect(stage.screen.mode == .browsing)
  }

  @Test func `a step at the end of the range changes nothing and shows the range`() {
    var stage = Stage()
    stage.select("blind/position")
    stage.type("100\n>")
    #expect(stage.changes() == [#"{"key":"blind/position","set":100}"#])
    #expect(stage.screen.notice?.text == "the range is 0 to 100 %")
  }

  private static let lit = Stage.property("lamp/level", .integer(shown(0...254, .percent)), 0)
  private static let white = Stage.property("lamp/white", .integer(shown(150...500, .kelvin)), 0)

  private static func shown(_ range: ClosedRange<Double>, _ display: Display) -> NumberRule {
    var rule = NumberRule(range: range, step: 1)
    rule.display = display
    return rule
  }

  @Test(
    arguments: [
      // Each press moves what people read by one.
      (lit, 127, "+", #""set":130"#), (lit, 127, "-", #""set":124"#), (lit, 0, "+", #""set":3"#),
      (lit, 254, "-", #""set":251"#), (lit, 127, "40\n", #""set":102"#),
      (lit, 127, "40%\n", #""set":102"#),
      // Warmer is fewer kelvin and more mired.
      (white, 250, "+", #""set":249"#), (white, 250, "-", #""set":251"#),
      (white, 250, "3000\n", #""set":333"#), (white, 250, "3000K\n", #""set":333"#),
    ] as [(PropertyRow, Int64, String, String)]
  )
  func `values are shown, stepped and typed in the unit that people read`(
    row: PropertyRow,
    value: Int64,
    keys: String,
    request: String
  ) {
    var stage = Stage(facts: [row])
    stage.show(row.key, value)
    _ = stage.requests()
    stage.type(keys)
    #expect(stage.requests().contains { $0.contains(request) })
  }

  @Test func `a value outside is refused in the unit that people read`() {
    var stage = Stage(facts: [Self.white])
    stage.show("lamp/white", 250)
    #expect(stage.texts().contains { $0.contains("4000 K") })
    _ = stage.requests()
    stage.type("9000\n")
    #expect(stage.requests() == [])
    #expect(stage.screen.notice?.text == "9000 K is outside 2000 to 6667 K")
  }

  @Test(arguments: ["+", "-", " ", "\n", "4"])
  func `a read-only property is shown, and no key changes it`(key: String) {
    var row = Stage.property("boiler/pressure", .number(NumberRule(unit: "bar")), 0)
    row.isReadOnly = true
    var stage = Stage(facts: [row])
    _ = stage.requests()
    stage.type(key)
    #expect(stage.requests() == [])
    #expect(stage.screen.mode == .browsing)
    #expect(stage.screen.notice?.text == "pressure is read-only: only the device changes it")
    stage.type("i")
    #expect(stage.texts().contains { $0.contains("read-only") })
    #expect(!stage.texts().contains { $0.contains("accepts") })
  }

  @Test(arguments: [
    ([ScreenKey](), "desk-lamp/power"),
    ([.down, .character("j")], "boiler/target_temperature"),
    ([.down, .up, .character("k")], "desk-lamp/power"),
    ([.end], "strip/speed"),
    ([.character("G"), .character("g")], "desk-lamp/power"),
    ([.pageDown], "strip/speed"),
    ([.end, .pageUp], "desk-lamp/power"),
  ])
  func `the selection moves from property to property`(keys: [ScreenKey], selected: String) {
    var stage = Stage()
    for key in keys { stage.screen.press(key, at: stage.now) }
    #expect(stage.screen.list.selectedKey == selected)
  }

  @Test(arguments: [
    ("/bl\n", ["blind/position", "blind/command"]),
    ("/Desk\n", ["desk-lamp/power", "desk-lamp/brightness"]),
    ("/b*/p*\n", ["blind/position"]),
    ("/xyz\n", []),
    ("/b\u{7F}\u{7F}", Stage.facts.map(\.key)),
    ("/blind\u{1B}", Stage.facts.map(\.key)),
    ("/blind\n\u{1B}", Stage.facts.map(\.key)),
  ])
  func `the filter accepts part of a name or a pattern`(keys: String, expected: [String]) {
    var stage = Stage()
    stage.type(keys)
    let shown = stage.screen.list.lines.compactMap { line in
      if case .property(let place) = line { stage.screen.rows[place].property.key } else { nil }
    }
    #expect(shown == expected)
    #expect(stage.screen.list.selectedKey.map(expected.contains) ?? expected.isEmpty)
  }

  @Test func `letters typed into the filter are not commands`() {
    var stage = Stage()
    stage.type("/qfc!\n")
    #expect(!stage.screen.isDone)
    #expect(stage.requests() == [])
  }

  @Test func `any key closes the help and only q quits`() {
    var stage = Stage()
    stage.type("?")
    #expect(stage.screen.mode == .help(offset: 0))
    stage.type("q")
    #expect(stage.screen.mode == .browsing)
    #expect(!stage.screen.isDone)
    stage.type("q")
    #expect(stage.screen.isDone)
  }

  @Test func `the help scrolls only as far as needed`() {
    var stage = Stage(columns: 40, rows: 10)
    stage.type("?" + String(repeating: "j", count: 99))
    #expect(stage.screen.mode == .help(offset: KeyHelp.count - stage.screen.list.height))
    #expect(stage.texts().contains { $0.contains("changes, and commands") })
  }
}

extension Stage {
  fileprivate mutating func show(_ key: String, _ value: Int64) {
    let row = TargetRow(
      key: key,
      target: .integer(value),
      actual: .integer(value),
      phase: nil,
      ageMilliseconds: nil
    )
    screen.receive(.targets([row], id: "get"), at: now)
  }
}

extension Display {
  fileprivate static let percent = Display(
    unit: "%",
    scale: .linear(from: .init(0, 254), to: .init(0, 100), decimals: 0)
  )
  fileprivate static let kelvin = Display(unit: "K", scale: .mired)
}

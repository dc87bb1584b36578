// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import JSON
import LastOut
import Testing
import Values
@testable import Screen

/// Complete drawings of the screen.
struct PictureTests {
  /// A settling lamp, a waiting boiler, a failed blind and an idle strip.
  private static func stage(columns: Int, rows: Int) -> Stage {
    var stage = Stage(columns: columns, rows: rows)
    stage.screen.receive(
      .pending(
        [
          PendingRow(
            key: "boiler/target_temperature",
            value: 22.5,
            collapsed: 2,
            waits: .offline,
            dueMilliseconds: 42_000
          )
        ],
        id: "pending"
      ),
      at: stage.now
    )
    stage.accept("01J", "blind/position", 80)
    stage.hear(.failed, "01J", "blind/position", 80, reason: "not confirmed within 5s")
    stage.type("j]>>")
    for number in 1...3 { stage.accept("me-\(number)", "desk-lamp/brightness", 112) }
    stage.now = stage.now.advanced(by: .milliseconds(100))
    return stage
  }

  @Test func `eighty columns show every column but the level`() {
    let picture = """
       settle  4 devices · 9 properties · 2 pending                       ● connected
       PROPERTY               TARGET       ACTUAL  STATE                      CHANGES
       Desk lamp
         power                    on
       ▌ brightness              112          100  ██████████▊      0.2s            3

       Boiler
         target_temperature     22.5 °C        21  · device offline 41s             3
         mode                   heat

       Blind
         position                 30 %             ✗ failed: not confirm…       1 → 0
         command                   -

       Strip
         color               #ff8800
         gain                    0.5
         speed                     -



      ────────────────────────────────────────────────────────────────────────────────
       desk-lamp/brightness  ·  actual 100  ·  0 to 254, step 1
       ←→ step  0-9 type  f flush  c cancel  / filter  ? help  q quit
      """
    #expect(compare(Self.stage(columns: 80, rows: 24), picture) == [])
  }

  @Test func `the line below the list shows the number of further properties`() {
    var stage = Stage(columns: 30, rows: 20)
    #expect(stage.texts()[17] == "──────────────────── 1 more ──")
    stage.type("G")
    #expect(stage.texts()[17] == String(repeating: "─", count: 30))
  }

  @Test func `forty columns and ten rows are usable`() {
    let picture = """
       settle  9 properties       ● connected
       PROPERTY        TARGET    STATE
       Desk lamp
        power              on
      ▌ brightness        112    █████▍   0.2s
       Boiler
        target_temper…   22.5 °C · device 41s
        mode             heat
       desk-lamp/brightness  ·  actual 100
       ←→ step  0-9 type  ? help  q quit
      """
    #expect(compare(Self.stage(columns: 40, rows: 10), picture) == [])
  }

  @Test func `twenty columns and four rows are usable`() {
    let picture = """
       settle   ● connected
       Desk lamp
      ▌ bri…    112    0.2s
       ? help  q quit
      """
    #expect(compare(Self.stage(columns: 22, rows: 4), picture) == [])
  }

  @Test(arguments: [(19, 24), (80, 3), (1, 1), (0, 0)])
  func `a terminal that is too small shows a message`(columns: Int, rows: Int) {
    let stage = Stage(columns: columns, rows: rows)
    let expected = String("too small".prefix(columns))
    #expect(stage.texts().first ?? "" == expected)
  }

  @Test func `without UTF-8 only ASCII is drawn`() {
    let stage = Self.stage(columns: 100, rows: 24)
    let texts = stage.texts(.ascii)
    #expect(texts.allSatisfy { $0.utf8.allSatisfy { (0x20..<0x7F).contains($0) } })
    #expect(stage.line("brightness", .ascii).hasPrefix("brightness 112 100 #########"))
    #expect(stage.line("position", .ascii).hasPrefix("position 30 % x failed: not confirmed"))
  }

  @Test func `a wide terminal shows a value within its range`() {
    let line =
      Self.stage(columns: 110, rows: 24).texts()
      .first { $0.contains("brightness") } ?? ""
    #expect(line.contains("────────○●───────────"))
  }

  @Test(arguments: 20...170)
  func `no line exceeds the width`(columns: Int) {
    let stage = Self.stage(columns: columns, rows: 24)
    let texts = stage.texts()
    #expect(texts.allSatisfy { CellWidth.of($0) <= columns })
    #expect(texts.contains { $0.contains("112") })
    #expect(texts[23].hasSuffix("q quit"))
  }

  @Test(arguments: 4...60)
  func `the selection is in view at every height, below its device`(rows: Int) {
    var stage = Stage(columns: 80, rows: rows)
    for key in [ScreenKey](repeating: .down, count: 9) + .init(repeating: .up, count: 9) {
      stage.screen.press(key, at: stage.now)
      let texts = stage.texts()
      let line = texts.firstIndex { $0.hasPrefix(" ▌ ") }
      let names = ["Desk lamp", "Boiler", "Blind", "Strip"]
      let heading = texts.prefix(line ?? 0).last { text in names.contains { text == " \($0)" } }
      let wanted = stage.screen.selectedRow?.property.deviceName
      #expect(heading == wanted.map { " \($0)" })
    }
  }

  @Test func `names and reasons cannot control the terminal`() {
    var facts = Stage.lamp
    facts.deviceName = "Evil\u{1B}[2J"
    facts.name = "電気\u{7}"
    var stage = Stage(facts: [facts])
    stage.type(">")
    stage.accept("me-1", facts.key, 101)
    stage.hear(.failed, "me-1", facts.key, 101, reason: "a\nb")
    let text = stage.texts().joined()
    #expect(!text.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F })
    #expect(text.contains("Evil\\u{1b}[2J"))
    #expect(text.contains("✗ failed: a\\nb"))
  }

  @Test(arguments: [
    ("j4", " desk-lamp/brightness = 4_   0 to 254, step 1"), ("/bo", " /bo_"),
    (
      "GG",
      " strip/speed  ·  0 to 10, step 1  ·  settles 200ms, at most 200ms, first at once, 200ms apart"
    ),
  ])
  func `the line below the list shows the typed text or the selection`(
    keys: String,
    expected: String
  ) {
    var stage = Stage(columns: 100)
    stage.type(keys)
    #expect(stage.texts()[22] == expected)
  }

  /// The lines that differ.
  private func compare(_ stage: Stage, _ picture: String) -> [String] {
    let wanted = picture.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    let found = stage.texts()
    guard wanted.count == found.count else { return found }
    return zip(wanted, found).filter { $0 != $1 }.map { "\($1)| instead of |\($0)" }
  }
}

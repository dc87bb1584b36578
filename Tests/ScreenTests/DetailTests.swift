// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import JSON
import Testing
import Values
@testable import Screen

/// The page about one property, and what it shares with the help.
struct DetailTests {
  private let long =
    "not confirmed within 5s: the device reported 12, which is neither the value before nor the "
    + "target, and a-word-without-any-space-that-is-longer-than-the-whole-line-of-a-small-terminal"

  @Test func `a long error can be read to its end`() {
    var stage = Stage(columns: 40, rows: 12)
    stage.select("desk-lamp/brightness")
    stage.type("40\n")
    stage.accept("me-1", "desk-lamp/brightness", 40)
    stage.hear(.failed, "me-1", "desk-lamp/brightness", 40, reason: long)
    stage.type("i")

    var seen = ""
    for _ in 0..<40 {
      seen += stage.texts().dropFirst(2).prefix(stage.screen.list.height).joined()
      stage.type("j")
    }
    let page = DetailText(stage.screen).lines
    #expect(page.allSatisfy { CellWidth.of($0) <= 38 })
    #expect(page.joined().filter { $0 != " " }.contains(("failed:" + long).filter { $0 != " " }))
    for line in page { #expect(seen.contains(line)) }
    #expect(stage.screen.mode == .details(offset: page.count - stage.screen.list.height))
  }

  @Test func `an error that was shown stays readable`() {
    var stage = Stage(columns: 40, rows: 24)
    stage.select("desk-lamp/brightness")
    stage.type("2,5\n")
    stage.pass(10_000)
    #expect(stage.screen.notice == nil)
    stage.type("i")
    #expect(stage.texts().contains { $0.contains("last error:") })
    stage.type("\u{1B}")
    #expect(stage.screen.mode == .browsing)
  }

  @Test(arguments: [
    ([ScreenKey.pageDown], 4), ([.end], KeyHelp.count - 5), ([.end, .home], 0),
    ([.end, .pageUp], KeyHelp.count - 9), ([.character(" "), .up], 3), ([.up], 0),
  ])
  func `the help scrolls by lines and pages`(keys: [ScreenKey], offset: Int) {
    var stage = Stage(columns: 40, rows: 9)
    stage.type("?")
    #expect(stage.screen.list.height == 5)
    for key in keys { stage.screen.press(key, at: stage.now) }
    #expect(stage.screen.mode == .help(offset: offset))
  }

  @Test func `an action shows the word that was sent last`() {
    var stage = Stage()
    stage.select("blind/command")
    stage.type(">> ")
    stage.accept("me-1", "blind/command", "STOP")
    stage.hear(.sent, "me-1", "blind/command", "STOP")
    stage.type("<")
    #expect(stage.line("command").contains("CLOSE"))
    stage.select("desk-lamp/power")
    #expect(stage.line("command").hasPrefix("command STOP"))
  }

  @Test(
    arguments: [
      ("50%\n", [#""set":127"#], nil), ("101%\n", [], "101% is outside 0% to 100%"),
    ] as [(String, [String], String?)]
  )
  func `a percentage can be typed`(keys: String, changes: [String], notice: String?) {
    var stage = Stage()
    stage.select("desk-lamp/brightness")
    stage.type(keys)
    let found = stage.changes()
    #expect(found.count == changes.count)
    for (line, text) in zip(found, changes) { #expect(line.contains(text)) }
    #expect(stage.screen.notice?.text == notice)
  }

  @Test func `the truth about the broker is shown`() {
    var stage = Stage()
    func status(_ state: StatusReport.Broker.State, _ reason: String? = nil) -> ControlReply {
      var report = StatusReport(version: "1", isRunning: true)
      report.brokers = [StatusReport.Broker(name: "mqtt", url: "mqtt://nas", state: state)]
      report.brokers[0].reason = reason
      return .status(report, id: "status")
    }
    func wait() {
      let row = PendingRow(
        key: "desk-lamp/brightness",
        value: 40,
        collapsed: 0,
        waits: .offline,
        dueMilliseconds: 58_000
      )
      stage.screen.receive(.pending([row], id: "pending"), at: stage.now)
    }
    stage.screen.receive(status(.connected), at: stage.now)
    wait()
    #expect(stage.texts()[0].hasSuffix("● connected"))
    #expect(stage.line("brightness").contains("· device offline 58s"))

    stage.screen.receive(status(.waiting, "connection refused"), at: stage.now)
    #expect(stage.texts()[0].hasSuffix("○ gateway without broker"))
    #expect(stage.line("brightness").contains("· broker offline 58s"))
    let reason = "the gateway has no broker: mqtt://nas: connection refused"
    #expect(stage.screen.notice?.text == reason)

    stage.screen.receive(status(.connected), at: stage.now)
    #expect(stage.screen.notice?.text == "the broker is back")
    #expect(stage.texts()[0].hasSuffix("● connected"))
  }
}

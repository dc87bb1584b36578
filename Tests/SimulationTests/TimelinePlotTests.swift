// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Simulation
import Testing

@Suite struct TimelinePlotTests {
  private func plot(_ lines: String, width: Int, leading: Bool = false) -> [String] {
    let policy = Policy(delay: .milliseconds(300), leading: leading)
    var session = TimelineSession(policy: policy, draws: true)
    session.append(Array(lines.utf8).span)
    session.finish()
    #expect(session.output.isEmpty, "a drawing replaces the lines")
    return session.plot?.text(width: width).split(separator: "\n", omittingEmptySubsequences: false)
      .map(String.init) ?? []
  }

  @Test func `changes are bars, commands are dots, on one axis`() {
    let drawing = plot(
      """
      {"key":"a/b","set":1,"at":0}
      {"key":"a/b","set":2,"at":1}
      {"key":"a/b","set":3,"at":150}
      {"key":"long/name","toggle":true,"at":450}
      {"key":"long/name","set":true,"at":450}
      """,
      width: 11 + 31
    )
    #expect(
      drawing == [
        "           0 ms                     750 ms",
        "",
        "a/b        █     ▄",
        "                             ●",
        "           3 changes in, 1 command out, the last 3 at 450 ms",
        "",
        "long/name                    ▄",
        "                                         ●",
        "           1 change in, 1 command out, the last true at 750 ms",
        "",
      ]
    )
  }

  @Test func `the busiest column has the highest bar and a single change is visible`() {
    let burst = (0..<100).map { _ in #"{"key":"a","set":1,"at":0}"# }.joined(separator: "\n")
    let drawing = plot(burst + "\n" + #"{"key":"a","set":2,"at":150}"# + "\n", width: 24)
    #expect(drawing.dropFirst(2).first == "a  █     ▁")
  }

  @Test func `a terminal without UTF-8 gets ASCII`() {
    var session = TimelineSession(policy: Policy(delay: .milliseconds(300)), draws: true)
    let lines = """
      {"key":"küche/licht","set":1,"at":0}
      {"key":"küche/licht","set":2,"at":1}
      {"key":"küche/licht","set":"ä","at":150}

      """
    session.append(Array(lines.utf8).span)
    session.finish()
    let drawing = session.plot?.text(width: 40, marks: .ascii) ?? ""
    #expect(drawing.utf8.allSatisfy { $0 < 0x80 })
    let rows = drawing.split(separator: "\n").map(String.init)
    #expect(rows[1] == "k?che/licht  @       =")
    #expect(rows[2].hasSuffix("o"))
  }

  @Test func `a narrow terminal has an axis and a long key is cut`() {
    let key = String(repeating: "k", count: 60)
    let drawing = plot(#"{"key":"\#(key)","set":1,"at":0}"# + "\n", width: 10)
    #expect(drawing.dropFirst(2).first == String(repeating: "k", count: 31) + "…  █")
    #expect(drawing.first?.count == 32 + 2 + 20)
  }

  @Test func `a single instant is drawn at the left`() {
    let drawing = plot(#"{"key":"a","set":1,"at":5}"# + "\n", width: 40, leading: true)
    #expect(drawing.dropFirst(2).first == "a  █")
    #expect(drawing.dropFirst(3).first == "   ●")
  }

  @Test func `an empty timeline draws nothing`() {
    #expect(plot("", width: 80) == [""])
  }
}

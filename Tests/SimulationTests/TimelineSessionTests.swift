// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Simulation
import Testing

@Suite struct TimelineSessionTests {
  private struct Result: Hashable {
    var output: String
    var mistakes: [Int: String]
  }

  private func play(_ lines: String, _ policy: Policy) -> Result {
    play(lines, TimelineSession(policy: policy))
  }

  private func play(_ lines: String, _ session: consuming TimelineSession) -> Result {
    session.append(Array(lines.utf8).span)
    session.finish()
    return Result(
      output: String(decoding: session.output, as: UTF8.self),
      mistakes: Dictionary(uniqueKeysWithValues: session.mistakes.map { ($0.line, $0.message) })
    )
  }

  private func outputs(_ lines: String, delay: Int = 300, leading: Bool = false) -> [String] {
    let policy = Policy(delay: .milliseconds(delay), leading: leading)
    let result = play(lines, policy)
    #expect(result.mistakes.isEmpty)
    return result.output.split(separator: "\n").map(String.init)
  }

  @Test func `a run is one line with its members in a fixed order`() {
    let result = play(
      """
      {"key":"a/b","set":1,"at":0}
      {"key":"a/b","set":2,"at":10}
      {"key":"a/b","set":{"x":[1,2.5]},"at":20.5}
      """,
      Policy(delay: .milliseconds(300))
    )
    #expect(
      result
        == Result(
          output: #"{"at":320.5,"key":"a/b","value":{"x":[1,2.5]},"collapsed":2}"# + "\n",
          mistakes: [:]
        )
    )
  }

  @Test func `a missing time repeats the line before and starts at 0`() {
    let lines = """
      {"key":"a","set":1}
      {"key":"b","set":2,"at":100}
      {"key":"c","set":3}
      """
    #expect(
      outputs(lines) == [
        #"{"at":300,"key":"a","value":1,"collapsed":0}"#,
        #"{"at":400,"key":"b","value":2,"collapsed":0}"#,
        #"{"at":400,"key":"c","value":3,"collapsed":0}"#,
      ]
    )
  }

  @Test func `a due timer precedes an event of the same instant`() {
    let lines = """
      {"key":"a","set":1,"at":0}
      {"key":"a","set":2,"at":300}
      """
    #expect(
      outputs(lines) == [
        #"{"at":300,"key":"a","value":1,"collapsed":0}"#,
        #"{"at":600,"key":"a","value":2,"collapsed":0}"#,
      ]
    )
  }

  @Test func `delay 0 collapses a batch and runs at its end`() {
    let lines = """
      {"key":"a","set":1,"at":5}
      {"key":"b","set":2}
      {"key":"a","set":3}
      {"key":"a","set":4,"at":6}
      """
    #expect(
      outputs(lines, delay: 0) == [
        #"{"at":5,"key":"a","value":3,"collapsed":1}"#,
        #"{"at":5,"key":"b","value":2,"collapsed":0}"#,
        #"{"at":6,"key":"a","value":4,"collapsed":0}"#,
      ]
    )
  }

  @Test func `keys due at the same instant run in the order of their first lines`() {
    let lines = """
      {"key":"b","set":1,"at":0}
      {"key":"a","set":2,"at":0}
      {"key":"a","set":3,"at":10}
      {"key":"b","set":4,"at":10}
      """
    #expect(
      outputs(lines) == [
        #"{"at":310,"key":"b","value":4,"collapsed":1}"#,
        #"{"at":310,"key":"a","value":3,"collapsed":1}"#,
      ]
    )
  }

  @Test func `a leading value runs before its own batch ends`() {
    let lines = """
      {"key":"a","set":1,"at":0}
      {"key":"a","set":2,"at":0}
      {"key":"b","set":9,"at":0}
      """
    #expect(
      outputs(lines, leading: true) == [
        #"{"at":0,"key":"a","value":1,"collapsed":0}"#,
        #"{"at":0,"key":"b","value":9,"collapsed":0}"#,
        #"{"at":300,"key":"a","value":2,"collapsed":0}"#,
      ]
    )
  }

  @Test func `now makes the change and flushes its key`() {
    let lines = """
      {"key":"a","set":1,"at":0}
      {"key":"b","set":2,"at":1}
      {"key":"a","set":3,"now":true,"at":2}
      """
    #expect(
      outputs(lines) == [
        #"{"at":2,"key":"a","value":3,"collapsed":1}"#,
        #"{"at":301,"key":"b","value":2,"collapsed":0}"#,
      ]
    )
  }

  @Test func `a step is relative to the pending value, otherwise to the last one`() {
    let lines = """
      {"key":"a","set":20,"at":0}
      {"key":"a","step":5,"at":10}
      {"key":"a","step":-0.1,"at":1000}
      {"key":"a","cancel":true,"at":1010}
      {"key":"a","step":1,"at":1020}
      """
    #expect(
      outputs(lines) == [
        #"{"at":310,"key":"a","value":25,"collapsed":1}"#,
        #"{"at":1320,"key":"a","value":26,"collapsed":0}"#,
      ]
    )
  }

  @Test(arguments: [("true", "false"), ("false", "true"), (#""ON""#, #""OFF""#)])
  func `a toggle inverts the value`(before: String, after: String) {
    let lines = """
      {"key":"a","set":\(before),"at":0}
      {"key":"a","toggle":true,"at":1000}
      """
    #expect(
      outputs(lines) == [
        #"{"at":300,"key":"a","value":\#(before),"collapsed":0}"#,
        #"{"at":1300,"key":"a","value":\#(after),"collapsed":0}"#,
      ]
    )
  }

  @Test func `flush and cancel accept patterns`() {
    let lines = """
      {"key":"x/1","set":1,"at":0}
      {"key":"y/1","set":2}
      {"key":"x/2","set":3}
      {"key":"y/2","set":4}
      {"key":"x/*","flush":true,"at":5}
      {"key":"?/1","cancel":true}
      """
    #expect(
      outputs(lines) == [
        #"{"at":5,"key":"x/1","value":1,"collapsed":0}"#,
        #"{"at":5,"key":"x/2","value":3,"collapsed":0}"#,
        #"{"at":300,"key":"y/2","value":4,"collapsed":0}"#,
      ]
    )
  }

  @Test(arguments: [
    (#"{"key":"a","set":1,"at":5}"#, #""at" is 5 after 10: it must not decrease"#),
    (
      #"{"key":"a","set":1,"at":2e12}"#,
      #""at" is 2000000000000: milliseconds from 0 to 1000000000000 are allowed"#
    ),
    (
      #"{"key":"n","step":1}"#,
      #"n has no value to count from: "set" it first"#
    ),
    (#"{"key":"k","step":1}"#, #""step" needs a number; k is at 'red'"#),
    (#"{"key":"k","toggle":true}"#, #""toggle" needs true, false, on or off; k is at 'red'"#),
    (
      #"{"get":"*"}"#,
      #""get" means nothing on a virtual clock: set, step, toggle, flush and cancel are allowed"#
    ),
  ])
  func `an invalid change is reported by its line number and skipped`(
    line: String,
    message: String
  ) {
    let before = #"{"key":"k","set":"red","at":10}"#
    let after = #"{"key":"a","set":7,"at":20}"#
    let result = play([before, line, after].joined(separator: "\n"), Policy(delay: .zero))
    #expect(result.mistakes == [2: message])
    #expect(
      result.output == """
        {"at":10,"key":"k","value":"red","collapsed":0}
        {"at":20,"key":"a","value":7,"collapsed":0}

        """
    )
  }

  @Test(arguments: ["not json", "{", "[]", #"{"key":"a"}"#, #"{"set":1}"#, "\u{0}"])
  func `an unreadable line is reported by its number and skipped`(line: String) {
    let lines = [#"{"key":"a","set":1}"#, line, #"{"key":"a","set":2}"#]
    let result = play(lines.joined(separator: "\n"), Policy(delay: .zero))
    #expect(Array(result.mistakes.keys) == [2])
    #expect(result.output == #"{"at":0,"key":"a","value":2,"collapsed":1}"# + "\n")
  }

  @Test func `a line beyond the limit is reported and the rest is played`() {
    let long = #"{"key":"a","set":""# + String(repeating: "x", count: 70_000) + #""}"#
    let result = play(long + "\n" + #"{"key":"a","set":2}"# + "\n", Policy(delay: .zero))
    #expect(result.mistakes == [1: "the line is longer than 65536 bytes"])
    #expect(result.output == #"{"at":0,"key":"a","value":2,"collapsed":0}"# + "\n")
  }

  @Test func `splitting the input anywhere changes nothing`() {
    let lines = #"{"key":"a","set":1}"# + "\r\n\n" + #"{"key":"a","set":2,"at":500}"#
    let whole = play(lines, Policy(delay: .milliseconds(300)))
    var session = TimelineSession(policy: Policy(delay: .milliseconds(300)))
    for byte in lines.utf8 { session.append([byte].span) }
    session.finish()
    #expect(String(decoding: session.output, as: UTF8.self) == whole.output)
    #expect(whole.output.split(separator: "\n").count == 2)
  }
}

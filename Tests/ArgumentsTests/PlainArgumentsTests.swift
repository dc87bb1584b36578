// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Testing

struct PlainArgumentsTests {
  struct Turn: Command, Equatable {
    static let name = "turn"
    static let summary = "Turn a knob."
    static let parameters: [Parameter<Self>] = [
      .argument("key", \.key, help: "The key."),
      .argument("value", \.value, help: "The value."),
      .option("socket", \.socket, value: "PATH", help: "Where."),
      .option("wait", \.wait, value: "PHASE", alone: "best", help: "Wait."),
      .flag("now", short: "n", \.now, help: "At once."),
    ]
    var key = ""
    var value = ""
    var socket: String?
    var wait: String?
    var now = false

    mutating func take(plain arguments: [String]) -> Bool {
      var plain = PlainArguments(arguments)
      let words = plain.words { text, plain in
        switch text {
        case "--now": now = true
        case "--wait": wait = "best"
        case "--socket":
          guard let path = plain.value() else { return false }
          socket = path
        default: return false
        }
        return true
      }
      guard let words, words.count == 2 else { return false }
      (key, value) = (words[0], words[1])
      return true
    }
  }

  @Test(arguments: [
    ["k", "5"], ["k", "-5"], ["k", "-.5"], ["k", "-"], ["k", ""], ["k", "+5", "--now"],
    ["--now", "k", "on"], ["k", "--socket", "/run/s", "on"], ["k", "on", "--socket", "-"],
    ["k", "on", "--socket", "a", "--socket", "b"], ["--wait", "k", "sent"], ["k", "-\u{301}"],
    ["k", "on", "--socket", "-1"], ["-7", "-8", "--now", "--now"],
  ])
  func `What is taken without the table is what the table reads`(arguments: [String]) throws {
    var plain = Turn()
    let isTaken = plain.take(plain: arguments)
    #expect(isTaken)
    #expect(try Turn(arguments: arguments, calledAs: "tool turn") == plain)
  }

  @Test(arguments: [
    ["k"], ["k", "on", "off"], ["k", "on", "--socket"], ["k", "on", "--socket", "--now"],
    ["k", "on", "--socket=s"], ["k", "on", "--wait=sent"], ["k", "--", "on"], ["k", "on", "-n"],
    ["k", "on", "--help"], ["--version"], ["k", "on", "--later"], [],
  ])
  func `Everything else is left to the table`(arguments: [String]) {
    var plain = Turn()
    let isTaken = plain.take(plain: arguments)
    #expect(!isTaken)
  }

  @Test
  func `An entry reads what was begun without the table from the start`() throws {
    nonisolated(unsafe) var taken: [Turn] = []
    let entry = CommandEntry(Turn.self) { turn in
      unsafe taken.append(turn)
      return .done
    }
    let program = Program(name: "tool", version: "1", summary: "A tool.", commands: [entry])
    for line in [["turn", "k", "on", "--now"], ["turn", "--now", "k", "on", "--wait=sent"]] {
      guard case .run(let run) = try program.parse(line) else {
        Issue.record("not a command to run")
        continue
      }
      #expect(run() == .done)
    }
    var expected = [Turn(), Turn()]
    for index in expected.indices {
      expected[index].key = "k"
      expected[index].value = "on"
      expected[index].now = true
    }
    expected[1].wait = "sent"
    #expect(unsafe taken == expected)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import GatewayCore
import JSON
import LastOut
import Testing
import Values

@Suite struct FeedbackLoopTests {
  /// One step of a story: so much later a value is asked for, or reported.
  private enum Step {
    case ask(Value, after: Int)
    case report(JSONValue, after: Int)
  }

  /// A detector, its clock, and what became of each value that was asked for.
  private struct Story: ~Copyable {
    var detector = FeedbackLoopDetector(keys: 2)
    var now = Moment(nanoseconds: 5_000_000_000)
    private(set) var told = ""

    /// `.` for a value that passed, `!` for one that revealed a loop, `x` for one in a known loop.
    mutating func tell(_ steps: some Sequence<Step>) throws -> String {
      told = ""
      for step in steps { try tell(step) }
      return told
    }

    private mutating func tell(_ step: Step) throws {
      switch step {
      case .ask(let value, let pause):
        now = now.advanced(by: .milliseconds(pause))
        switch detector.requested(KeyIndex(1), value, at: now) {
        case .pass: told += "."
        case .loop(let source, let isNew):
          try #require(source == 0)
          told += isNew ? "!" : "x"
        }
      case .report(let wire, let pause):
        now = now.advanced(by: .milliseconds(pause))
        detector.reported(KeyIndex(1), wire, source: 0)
      }
    }
  }

  private static func number(_ number: Int) -> (Value, JSONValue) {
    (.number(Double(number)), .integer(Int64(number)))
  }

  /// Each value is asked for and then reported; `pause` is between a report and the next value.
  private static func round(_ values: [(Value, JSONValue)], pause: Int = 500) -> [Step] {
    values.flatMap { [.ask($0.0, after: pause), .report($0.1, after: 100)] }
  }

  private static func alternating(_ count: Int, pause: Int = 500) -> [Step] {
    round((0..<count).map { number($0.isMultiple(of: 2) ? 80 : 60) }, pause: pause)
  }

  @Test(arguments: [
    (Self.number(80), Self.number(60)),
    ((.boolean(true), .string("ON")), (.boolean(false), .string("OFF"))),
    ((.text("heat"), .string("heat")), (.text("auto"), .string("auto"))),
  ])
  func `two values that take turns with a report between them are a loop at the seventh turn`(
    first: (Value, JSONValue),
    second: (Value, JSONValue)
  ) throws {
    var story = Story()
    let steps = Self.round((0..<12).map { $0.isMultiple(of: 2) ? first : second })
    // The first report comes after the first value, so the story begins with the second one.
    #expect(try story.tell(Array(steps.prefix(20))) == ".........!")
  }

  @Test func `the value that stands is the one asked for before the first echo`() throws {
    var story = Story()
    _ = try story.tell([.report(60, after: 0)])
    #expect(try story.tell([.ask(60, after: 100)] + Self.alternating(8)) == "........!")
    // 80 stands and is welcome; 60 is not.
    #expect(try story.tell([.ask(80, after: 100), .ask(60, after: 100)]) == ".x")
  }

  @Test func `an echo that is itself echoed late is found whatever the report shows`() throws {
    // The device takes longer than half a turn: what it reports is the value before.
    var story = Story()
    var steps: [Step] = [.report(1, after: 0)]
    for number in 0..<9 {
      let isEven = number.isMultiple(of: 2)
      steps += [.ask(isEven ? 80 : 60, after: 400), .report(isEven ? 60 : 80, after: 300)]
    }
    #expect(try story.tell(steps) == "........!")
  }

  @Test func `no loop: values without a report in between, as scripts and fast hands send`() throws
  {
    var story = Story()
    _ = try story.tell([.report(60, after: 0)])
    let steps: [Step] = (0..<100).map { .ask($0.isMultiple(of: 2) ? 80 : 60, after: 50) }
    #expect(try story.tell(steps) == String(repeating: ".", count: 100))
  }

  @Test func `no loop: a report that repeats what is known is no sign of one`() throws {
    var story = Story()
    let steps = (0..<40).flatMap { number -> [Step] in
      [.report(60, after: 500), .ask(number.isMultiple(of: 2) ? 80 : 60, after: 500)]
    }
    #expect(try story.tell(steps) == String(repeating: ".", count: 40))
  }

  @Test func `no loop: a slider that goes back and forth over other values`() throws {
    var story = Story()
    let positions = [20, 40, 60, 80, 60, 40]
    let steps = Self.round((0..<60).map { Self.number(positions[$0 % 6]) })
    #expect(try story.tell(steps) == String(repeating: ".", count: 60))
  }

  @Test func `no loop: turns that take longer than ten seconds, as a timer switch`() throws {
    var story = Story()
    let steps = Self.alternating(40, pause: 10_000)
    #expect(try story.tell(steps) == String(repeating: ".", count: 40))
  }

  @Test func `no loop: six turns, and none of another key`() throws {
    var story = Story()
    _ = try story.tell([.report(60, after: 0), .ask(60, after: 100)])
    #expect(try story.tell(Self.alternating(7)) == ".......")
    #expect(story.detector.requested(KeyIndex(0), 60, at: story.now) == .pass)
  }

  /// A story in which 60 is refused and 80 stands.
  private func stopped() throws -> Story {
    var story = Story()
    _ = try story.tell([.report(60, after: 0), .ask(60, after: 100)])
    // The refused value is not sent, and so not reported.
    #expect(try story.tell(Self.alternating(8).dropLast()).last == "!")
    return story
  }

  @Test func `a loop stays stopped while its echoes go on`() throws {
    var story = try stopped()
    // The device repeats what it shows, and something answers with the other value.
    let steps = (0..<50).flatMap { _ -> [Step] in
      [.report(80, after: 3000), .ask(60, after: 3000), .ask(80, after: 10)]
    }
    #expect(try story.tell(steps) == String(repeating: "x.", count: 50))
  }

  @Test func `a third value ends the stop at once, and detection starts over`() throws {
    var story = try stopped()
    #expect(try story.tell([.ask(60, after: 100), .ask(70, after: 100)]) == "x.")
    #expect(try story.tell([.report(70, after: 50), .ask(60, after: 100)]) == ".")
    #expect(try story.tell(Self.alternating(8)) == ".......!")
  }

  @Test func `ten seconds without the refused value end the stop`() throws {
    var story = try stopped()
    _ = try story.tell([.report(80, after: 100)])
    #expect(try story.tell([.ask(60, after: 9000)]) == "x")
    #expect(try story.tell([.report(80, after: 100), .ask(60, after: 9899)]) == "x")
    #expect(try story.tell([.report(80, after: 100), .ask(60, after: 9900)]) == ".")
  }

  @Test func `a client that repeats without a report is no feedback loop, and is free for an hour`()
    throws
  {
    var story = try stopped()
    #expect(try story.tell([.ask(60, after: 400), .ask(60, after: 400)]) == "x.")
    #expect(try story.tell(Self.alternating(100)) == String(repeating: ".", count: 100))
    story.now = story.now.advanced(by: .seconds(3600))
    #expect(try story.tell(Self.alternating(12)).contains("!"))
  }

  @Test func `a third value ends the exemption`() throws {
    var story = try stopped()
    _ = try story.tell([.ask(60, after: 400), .ask(60, after: 400)])
    #expect(try story.tell([.ask(70, after: 400)] + Self.alternating(12)).contains("!"))
  }
}

extension Value: ExpressibleByIntegerLiteral {
  package init(integerLiteral value: Int) { self = .number(Double(value)) }
}

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
    /// How long the last value that was asked for waits; zero if it passed.
    private(set) var wait = Duration.zero

    /// `.` for a value that passed, `!` for the first one that is slowed, `x` for a later one.
    mutating func tell(_ steps: some Sequence<Step>) throws -> String {
      told = ""
      for step in steps { try tell(step) }
      return told
    }

    private mutating func tell(_ step: Step) throws {
      switch step {
      case .ask(let value, let pause):
        now = now.advanced(by: .milliseconds(pause))
        switch detector.requested(KeyIndex(1), value, quiet: .milliseconds(20), at: now) {
        case .pass:
          told += "."
          wait = .zero
        case .slow(let wait, let source, let isNew):
          try #require(source == 0)
          told += isNew ? "!" : "x"
          self.wait = wait
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
  func `two values that take turns with a report between them are slowed from the eighth turn on`(
    first: (Value, JSONValue),
    second: (Value, JSONValue)
  ) throws {
    var story = Story()
    let steps = Self.round((0..<12).map { $0.isMultiple(of: 2) ? first : second })
    // The first report comes after the first value, so the story begins with the second one.
    #expect(try story.tell(Array(steps.prefix(22))) == "..........!")
  }

  @Test func `an echo that is itself echoed late is found whatever the report shows`() throws {
    // The device takes longer than half a turn: what it reports is the value before.
    var story = Story()
    var steps: [Step] = [.report(1, after: 0)]
    for number in 0..<10 {
      let isEven = number.isMultiple(of: 2)
      steps += [.ask(isEven ? 80 : 60, after: 400), .report(isEven ? 60 : 80, after: 300)]
    }
    #expect(try story.tell(steps) == ".........!")
  }

  @Test func `a device that reports every third value only hides no loop`() throws {
    var story = Story()
    var steps: [Step] = [.report(1, after: 0)]
    for number in 0..<12 {
      let value = number.isMultiple(of: 2) ? 80 : 60
      steps.append(.ask(.number(Double(value)), after: 100))
      if number.isMultiple(of: 3) { steps.append(.report(.integer(Int64(value)), after: 50)) }
    }
    #expect(try story.tell(steps) == "...........!")
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

  @Test func `no loop: seven turns, and none of another key`() throws {
    var story = Story()
    _ = try story.tell([.report(60, after: 0), .ask(60, after: 100)])
    #expect(try story.tell(Self.alternating(8)) == "........")
    let other = story.detector.requested(KeyIndex(0), 60, quiet: .zero, at: story.now)
    #expect(other == .pass)
  }

  /// A story in which 60 and 80 have taken so many turns, each a little more than two seconds after
  /// the one before; the last one asked for 60, and was reported 100 ms later.
  private func slowed(turns: Int = 8, pause: Int = 2000) throws -> Story {
    var story = Story()
    _ = try story.tell([.report(80, after: 0), .ask(80, after: 100)])
    let values = (0...turns).map { Self.number(($0 + turns).isMultiple(of: 2) ? 60 : 80) }
    #expect(try story.tell(Self.round(values, pause: pause)).last == (turns == 8 ? "!" : "x"))
    return story
  }

  @Test func `the quiet period doubles with each turn, to two seconds`() throws {
    var story = try slowed()
    var waits = [story.wait]
    for turn in 9...17 {
      _ = try story.tell(Self.round([Self.number(turn.isMultiple(of: 2) ? 60 : 80)], pause: 2000))
      waits.append(story.wait)
    }
    #expect(
      waits
        == [40, 80, 160, 320, 640, 1280, 2000, 2000, 2000, 2000].map { Duration.milliseconds($0) }
    )
  }

  @Test(arguments: [(0, 40), (20, 40), (300, 600), (5000, 5000)])
  func `what doubles is the key's quiet period, and never less than 20 ms`(
    quiet: Int,
    wait: Int
  ) throws {
    var story = Story()
    _ = try story.tell([.report(60, after: 0), .ask(60, after: 100)] + Self.alternating(8))
    let verdict = story.detector.requested(
      KeyIndex(1),
      80,
      quiet: .milliseconds(quiet),
      at: story.now
    )
    #expect(verdict == .slow(wait: .milliseconds(wait), source: 0, isNew: true))
  }

  /// The twentieth turn is 39.9 s after the first, and its report 100 ms later.
  @Test(arguments: [(3999, 2), (4000, 30)])
  func `a minute after the first turn the longest wait is thirty seconds`(
    pause: Int,
    wait: Int
  ) throws {
    var story = try slowed(turns: 20)
    #expect(story.wait == .seconds(2))
    let steps: [Step] = [
      .ask(80, after: 8000), .report(80, after: 0), .ask(60, after: 8000), .report(60, after: 0),
      .ask(80, after: pause),
    ]
    _ = try story.tell(steps)
    #expect(story.wait == .seconds(wait))
  }

  @Test func `after twenty-eight turns in the first minute it is thirty seconds, too`() throws {
    var story = try slowed(turns: 28, pause: 1900)
    #expect(story.wait == .seconds(2))
    _ = try story.tell([.ask(80, after: 1900)])
    #expect(story.wait == .seconds(30))
  }

  @Test func `while a value waits, the other one and repetitions wait until the same moment`()
    throws
  {
    var story = try slowed(turns: 20)
    let steps: [Step] = [
      .ask(80, after: 500), .ask(60, after: 500), .ask(60, after: 500), .ask(60, after: 100),
    ]
    for (step, rest) in zip(steps, [1400, 900, 400, 300]) {
      _ = try story.tell([step])
      #expect(story.wait == .milliseconds(rest))
    }
    #expect(try story.tell([.ask(60, after: 300)]) == ".")
    #expect(try story.tell([.ask(80, after: 9000)]) == "x")
    #expect(story.wait == .seconds(2))
  }

  @Test func `while it is slowed, a value without a report waits, and makes no later one longer`()
    throws
  {
    var story = try slowed()
    // One report stands for three turns.
    for (place, wait) in [80, 160, 320, 320, 320].enumerated() {
      _ = try story.tell([.ask(place.isMultiple(of: 2) ? 80 : 60, after: 1000)])
      #expect(story.wait == .milliseconds(wait))
    }
  }

  @Test func `a third value is not slowed and ends nothing`() throws {
    var story = try slowed(turns: 20)
    #expect(try story.tell([.ask(70, after: 100)]) == ".")
    #expect(try story.tell([.report(70, after: 50), .ask(60, after: 100)]) == "x")
    #expect(try story.tell([.ask(80, after: 2000), .ask(70, after: 1)]) == "x.")
  }

  @Test func `before the eighth turn a third value begins the count again`() throws {
    var story = Story()
    _ = try story.tell([.report(60, after: 0), .ask(60, after: 100)])
    #expect(try story.tell(Self.alternating(8)) == "........")
    #expect(try story.tell([.ask(70, after: 100), .report(70, after: 10)]) == ".")
    #expect(try story.tell(Self.alternating(10)) == ".........!")
  }

  @Test func `ten seconds without a turn after the last wait end it`() throws {
    var story = try slowed(turns: 20)
    #expect(try story.tell([.ask(80, after: 11_900)]) == "x")
    story = try slowed(turns: 20)
    #expect(try story.tell([.ask(80, after: 11_901), .report(80, after: 100)]) == ".")
    #expect(try story.tell(Self.round([60, 80].map { Self.number($0) })) == "..")
  }

  @Test func `an urgent value counts and is not slowed, and neither is what it ends`() throws {
    var story = try slowed(turns: 20)
    func urgent(_ story: inout Story, after milliseconds: Int) -> FeedbackLoopDetector.Verdict {
      story.now = story.now.advanced(by: .milliseconds(milliseconds))
      return story.detector.requested(
        KeyIndex(1),
        80,
        isUrgent: true,
        quiet: .milliseconds(20),
        at: story.now
      )
    }
    let duringTheWait = urgent(&story, after: 100)
    #expect(duringTheWait == .pass)
    #expect(try story.tell([.ask(60, after: 100), .report(60, after: 2000)]) == "x")
    let afterIt = urgent(&story, after: 100)
    #expect(afterIt == .pass)
  }
}

extension Value: ExpressibleByIntegerLiteral {
  package init(integerLiteral value: Int) { self = .number(Double(value)) }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import JSON
import LastOut
import Operations
import Simulation
import TestBroker
import Testing

/// What `settle advise` finds out about recordings.
@Suite struct AdviceTests {
  private static let examples = ["slider", "knob", "taps"]

  private static func text(_ example: String) throws -> String {
    let folder = "\(#filePath)".split(separator: "/").dropLast(3).joined(separator: "/")
    return try #require(TextFile.read("/\(folder)/docs/examples/\(example).ndjson"))
  }

  private static func recording(_ lines: String, registry: Registry? = nil) throws -> Recording {
    var session = TimelineSession(recordingFor: registry)
    session.append(Array(lines.utf8).span)
    session.finish()
    let (mistakes, recording) = (session.mistakes, session.recording)
    #expect(mistakes.isEmpty)
    return try #require(recording)
  }

  private static func advice(
    _ lines: String,
    on key: Int = 0,
    registry: Registry? = nil,
    lanes: TrialLanes = TrialLanes(),
    wish: KeyAdvice.Wish = KeyAdvice.Wish()
  ) throws -> KeyAdvice {
    let recording = try recording(lines, registry: registry)
    let gestures = Gestures(of: recording, pause: .seconds(1))
    return KeyAdvice(on: key, of: recording, gestures, lanes, wish)
  }

  private static func row(_ policy: Policy, _ advice: KeyAdvice) throws -> KeyAdvice.Row {
    try #require(advice.rows.first { $0.policy == policy })
  }

  /// When `simulate` sends, in milliseconds.
  private static func simulated(_ lines: String, _ policy: Policy) throws -> [Double] {
    var session = TimelineSession(policy: policy)
    session.append(Array(lines.utf8).span)
    session.finish()
    return try String(decoding: session.output, as: UTF8.self).split(separator: "\n").map { line in
      try #require(try JSONParser.parse(Array(line.utf8).span)["at"]?.double)
    }
  }

  private static func milliseconds(_ moment: Moment) -> Double {
    Double(moment.nanoseconds) / 1_000_000
  }

  @Test(arguments: examples)
  func `every policy sends when simulate sends under it`(example: String) throws {
    let text = try Self.text(example)
    let advice = try Self.advice(text)
    #expect(advice.rows.count > 10)
    for row in advice.rows {
      let moments = row.outcome.commands.map { Self.milliseconds($0.at) }
      #expect(try moments == Self.simulated(text, row.policy), "\(row.policy)")
    }
  }

  @Test(arguments: examples)
  func `a policy is dominated if another is as good in everything and better in something`(
    example: String
  ) throws {
    let rows = try Self.advice(Self.text(example)).rows
    let figures = rows.map { row in
      [Double(row.outcome.commands.count)]
        + [row.outcome.typicalFinal, row.outcome.worstFinal, row.outcome.worstWait].map {
          ($0 / .milliseconds(1)).rounded()
        }
    }
    for (row, own) in zip(rows, figures) {
      let isBeaten = figures.contains { other in
        zip(other, own).allSatisfy { $0 <= $1 } && other != own
      }
      #expect(row.isDominated == isBeaten, "\(row.policy)")
    }
    #expect(rows.contains { $0.isDominated })
    #expect(rows.count { !$0.isDominated } > 3)
  }

  /// Two gestures: three changes, then one.
  private static let gestures = """
    {"at":0,"key":"a/b","set":1}
    {"at":100,"key":"a/b","set":2}
    {"at":250,"key":"a/b","set":3}
    {"at":5000,"key":"a/b","set":4}
    """

  @Test func `lateness and waits are counted from the changes`() throws {
    let advice = try Self.advice(Self.gestures)
    #expect(advice.changeCount == 4)
    #expect(advice.gestureCount == 2)
    let plain = try Self.row(Policy(delay: .milliseconds(300)), advice).outcome
    #expect(plain.commands.map { Self.milliseconds($0.at) } == [550, 5300])
    #expect(plain.typicalFinal == .milliseconds(300))
    #expect(plain.worstFinal == .milliseconds(300))
    #expect(plain.worstWait == .milliseconds(550))
    let leading = try Self.row(Policy(delay: .milliseconds(200), leading: true), advice).outcome
    #expect(leading.commands.map { Self.milliseconds($0.at) } == [0, 450, 5000])
    #expect(leading.typicalFinal == .zero, "the lower of two")
    #expect(leading.worstFinal == .milliseconds(200))
    #expect(leading.worstWait == .milliseconds(350), "the second change waits from 100 to 450")
  }

  @Test func `the suggestion has the fewest commands that the wish allows`() throws {
    for example in Self.examples {
      let text = try Self.text(example)
      for (final, wait) in [(500, 2000), (250, 2000), (500, 500), (2000, 9000)] {
        var wish = KeyAdvice.Wish()
        (wish.final, wish.wait) = (.milliseconds(final), .milliseconds(wait))
        let advice = try Self.advice(text, wish: wish)
        let suggested = try #require(advice.suggested)
        #expect(suggested.outcome.worstFinal <= wish.final)
        #expect(suggested.outcome.worstWait <= wish.wait)
        #expect(!suggested.isDominated)
        for row in advice.rows
        where row.outcome.worstFinal <= wish.final && row.outcome.worstWait <= wish.wait {
          #expect(row.outcome.commands.count >= suggested.outcome.commands.count)
        }
      }
    }
  }

  @Test func `a wish that nothing fulfils leads to the soonest final value`() throws {
    var wish = KeyAdvice.Wish()
    wish.wait = .zero
    let advice = try Self.advice(Self.gestures, wish: wish)
    let soonest = advice.rows.map(\.outcome.worstFinal).min()
    #expect(advice.suggested?.outcome.worstFinal == soonest)
  }

  @Test func `nobody waits for a cancelled change, and a flush ends a wait`() throws {
    let advice = try Self.advice(
      """
      {"at":0,"key":"a/b","set":1}
      {"at":50,"key":"a/b","cancel":true}
      {"at":3000,"key":"a/b","set":2}
      {"at":3010,"key":"a/b","flush":true}
      {"at":6000,"key":"a/b","set":3,"now":true}
      """
    )
    let outcome = try Self.row(Policy(delay: .milliseconds(100)), advice).outcome
    #expect(outcome.commands.map { Self.milliseconds($0.at) } == [3010, 6000])
    #expect(outcome.worstWait == .milliseconds(10))
    #expect(outcome.worstFinal == .milliseconds(10))
  }

  @Test func `a lane delays commands, and says how many it queued`() throws {
    // Three lamps at one instant, and then one of them again.
    let scene = """
      {"at":0,"key":"a/level","set":1}
      {"at":0,"key":"b/level","set":1}
      {"at":0,"key":"c/level","set":1}
      """
    var lanes = TrialLanes()
    lanes.limits = ["slow": LaneLimits(rate: 1, burst: 1)]
    lanes.shared = "slow"
    let policy = Policy(delay: .milliseconds(300))
    let last = try Self.advice(scene, on: 2, lanes: lanes)
    let outcome = try Self.row(policy, last).outcome
    #expect(last.hasLane)
    #expect(outcome.mostQueued == 2)
    #expect(outcome.worstFinal == .milliseconds(2300))
    let free = try Self.row(policy, Self.advice(scene, on: 2)).outcome
    #expect(free.mostQueued == 0)
    #expect(free.worstFinal == .milliseconds(300))
    // One command in flight, each confirmed after half a second.
    lanes.limits = ["slow": LaneLimits(window: .init(start: 1, min: 1, max: 1))]
    lanes.roundTrip = .milliseconds(500)
    let window = try Self.row(policy, Self.advice(scene, on: 2, lanes: lanes)).outcome
    #expect(window.mostQueued == 2)
    #expect(window.worstFinal == .milliseconds(1300))
  }

  /// A house whose policies inherit every field that a line could leave out.
  private static func registry(_ policy: String) throws -> Registry {
    let folder = try TemporaryFolder.make("settle-advice")
    defer { TemporaryFolder.remove(folder) }
    try TextFile.write(
      """
      blind:
        properties:
          position:
            type: integer
            range: [0, 100]
            policy: \(policy)
            command: {topic: blind/set, payload: $value}
          stop:
            type: choice
            values: [stop, go]
            urgent: [stop]
            ends: [position]
            command: {topic: blind/stop, payload: $value}
      """,
      to: folder + "/home.yaml"
    )
    do {
      return try ConfigurationLoader.loadDevices(in: folder).registry
    } catch {
      Issue.record("\(error.problems)")
      throw error
    }
  }

  @Test func `an urgent value is sent at once and ends what it overrides`() throws {
    let registry = try Self.registry("{delay: 2s}")
    let lines = """
      {"at":0,"key":"blind/position","set":10}
      {"at":100,"key":"blind/stop","set":"stop"}
      {"at":4000,"key":"blind/position","set":20}
      """
    let position = try Self.advice(lines, on: 0, registry: registry)
    let own = try #require(position.rows.first { $0.isInForce })
    #expect(own.policy == Policy(delay: .seconds(2), maxWait: .seconds(2)))
    #expect(own.outcome.commands.map { Self.milliseconds($0.at) } == [6000])
    let stop = try Self.advice(lines, on: 1, registry: registry)
    for row in stop.rows {
      #expect(row.outcome.commands.map { Self.milliseconds($0.at) } == [100])
    }
    #expect(stop.isOfNoConsequence)
  }

  @Test(arguments: [
    "{delay: 1s}", "{delay: 0, max_wait: none}", "live",
    "{delay: 700ms, leading: true, min_interval: 3s}",
  ])
  func `a line to paste reads back as its policy`(inForce: String) throws {
    // The line replaces one of a property, whose profile may say as much as the old line did.
    let advice = try Self.advice(
      #"{"at":0,"key":"blind/position","set":1}"#,
      registry: Self.registry(inForce)
    )
    for policy in try Self.advice(Self.text("slider")).rows.map(\.policy)
      + advice.rows.map(\.policy)
    {
      let line = PolicyText.yaml(policy, over: advice.rows.first { $0.isInForce }?.policy)
      let registry = try Self.registry(line)
      let found = try registry[registry.index(of: "blind/position")].property.policy
      #expect(found == policy, "\(line)")
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

@testable import GatewayCore

/// What a feedback loop sends, and what people get meanwhile.
@Suite struct SlowedLoopTests {
  private static let topic = "settle/lamp/level/set"

  private static func lamp(_ policy: Policy) -> Device {
    var level = CoreBench.number("level")
    level.policy = policy
    level.state = StateSource(topic: "lamp/state", value: .whole)
    level.urgent = [.number(0)]
    return Device(id: "lamp", name: "Lamp", properties: [level])
  }

  /// A core with a lamp that reports at once what it gets, and what left for it.
  private struct House: ~Copyable {
    var bench: CoreBench
    let key: KeyIndex
    /// When each message left, in milliseconds since the first change.
    private(set) var sent: [Int] = []
    private(set) var values: [Double] = []
    private(set) var log: [String] = []
    let start: Moment

    init(_ policy: Policy) throws {
      bench = CoreBench(isJournalled: false, devices: [SlowedLoopTests.lamp(policy)])
      key = try bench.core.registry.index(of: "lamp/level")
      bench.core.reported(key, .integer(1), source: 0, at: bench.now)
      start = bench.now
    }

    var milliseconds: Int { Int(start.duration(to: bench.now) / .milliseconds(1)) }

    mutating func ask(_ value: Double, skipsQuiet: Bool = false) throws {
      try bench.core.change(
        .set(.number(value)),
        of: key,
        receivedOn: SlowedLoopTests.topic,
        at: bench.now,
        ChangeOptions(skipsQuiet: skipsQuiet)
      )
      step()
    }

    /// Sends what may be sent; the lamp acknowledges and reports it.
    mutating func step() {
      var hasSent = true
      while hasSent {
        hasSent = false
        for effect in bench.step() {
          if effect.hasPrefix("log ") { log.append(effect) }
          guard effect.hasPrefix("publish"), let text = effect.split(separator: " ").last,
            let value = Double(text)
          else { continue }
          hasSent = true
          sent.append(milliseconds)
          values.append(value)
          bench.acknowledge()
          bench.core.reported(key, .number(value), source: 0, at: bench.now)
        }
      }
    }

    /// Moves on to the next deadline, or by so much.
    mutating func wait(atMost milliseconds: Int) {
      let end = bench.now.advanced(by: .milliseconds(milliseconds))
      bench.now = max(bench.now, min(bench.core.nextDeadline(after: bench.now) ?? end, end))
      step()
    }

    /// Something asks for the other value, `delay` after each message that leaves.
    mutating func loop(
      for milliseconds: Int,
      delay: Int,
      skipsQuiet: Bool = false,
      values pair: (Double, Double) = (60, 80)
    ) throws {
      try ask(pair.0, skipsQuiet: skipsQuiet)
      var answered = 0
      while self.milliseconds < milliseconds {
        if sent.count > answered {
          let due = sent[answered] + delay
          while self.milliseconds < due { wait(atMost: due - self.milliseconds) }
          answered += 1
          try ask(values[answered - 1] == pair.0 ? pair.1 : pair.0, skipsQuiet: skipsQuiet)
        } else {
          wait(atMost: milliseconds - self.milliseconds)
        }
      }
    }

    func count(from begin: Int, to end: Int) -> Int { sent.count { begin <= $0 && $0 < end } }
  }

  @Test func `a loop leaves at these times, and nothing of it is rejected`() throws {
    var house = try House(Policy(delay: .milliseconds(300)))
    try house.loop(for: 12_000, delay: 10)
    // The first value and seven turns as ever; then 600 ms, 1200 ms and two seconds.
    let first = (0..<9).map { 300 + 310 * $0 }
    #expect(Array(house.sent.prefix(9)) == first)
    #expect(Array(house.sent.dropFirst(9)) == [3390, 4600, 6610, 8620, 10_630])
    let statistics = house.bench.core.commands.log.statistics
    #expect(statistics.rejected == 0)
    #expect(house.bench.core.loops.slowedCount == 6)
  }

  @Test(arguments: [
    Policy(delay: .zero), Policy(delay: .milliseconds(20)), Policy(delay: .milliseconds(300)),
    Policy(delay: .milliseconds(300), maxWait: .seconds(2)), Policy(delay: .milliseconds(800)),
    .live,
  ])
  func `thirty messages leave in the first minute and two in each later one`(policy: Policy) throws
  {
    for delay in [0, 5, 200] {
      for skipsQuiet in [false, true] {
        var house = try House(policy)
        try house.loop(for: 600_000, delay: delay, skipsQuiet: skipsQuiet)
        let first = house.count(from: 0, to: 60_000)
        #expect(first <= 30, "\(policy), \(delay) ms")
        #expect(first >= 20, "it is slowed, not broken")
        for minute in 1..<10 {
          let later = house.count(from: minute * 60_000, to: (minute + 1) * 60_000)
          #expect((1...2).contains(later), "\(policy), \(delay) ms, minute \(minute)")
        }
      }
    }
  }

  @Test func `an urgent value of a loop leaves at once, and still the loop is slowed`() throws {
    var house = try House(Policy(delay: .milliseconds(20)))
    try house.loop(for: 120_000, delay: 5, values: (60, 0))
    #expect(house.count(from: 0, to: 60_000) <= 34)
    // Later each stop follows at once what comes 30 s after the one before.
    #expect(house.count(from: 60_000, to: 120_000) <= 4)
    var stops = 0
    for (place, value) in house.values.enumerated() where value == 0 {
      #expect(house.sent[place] == house.sent[place - 1] + 5)
      stops += 1
    }
    #expect(stops > 8)
  }

  @Test(arguments: [400, 500]) func `the last of many quick turns leaves two seconds later at most`(
    pause: Int
  ) throws {
    for count in 9...40 {
      var house = try House(Policy(delay: .milliseconds(20)))
      for number in 0..<count {
        try house.ask(number.isMultiple(of: 2) ? 80 : 60)
        let next = house.milliseconds + pause
        while number < count - 1, house.milliseconds < next {
          house.wait(atMost: next - house.milliseconds)
        }
      }
      let asked = house.milliseconds
      for _ in 0..<100 { house.wait(atMost: 1000) }
      #expect(house.values.last == (count.isMultiple(of: 2) ? 60 : 80), "\(count)")
      #expect(house.sent.last ?? .max <= asked + 2000, "\(count)")
    }
  }

  @Test func `the log names the topics and the values, once for a loop`() throws {
    var house = try House(Policy(delay: .milliseconds(20)))
    try house.loop(for: 20_000, delay: 10)
    #expect(
      house.log == [
        "log key=lamp/level commands=\(Self.topic) publishes=level/set states=lamp/state"
          + " values=60 and 80"
      ]
    )
  }

  @Test func `pending shows how long a slowed value waits`() throws {
    var house = try House(Policy(delay: .milliseconds(20)))
    try house.loop(for: 70_000, delay: 10)
    let pending = PendingStatus(of: house.key, in: house.bench.core.commands)
    #expect(pending?.waits == .quiet)
    let due = try #require(pending?.due)
    let wait = Int(house.start.duration(to: due) / .milliseconds(1)) - (house.sent.last ?? 0)
    #expect(wait == 30_010)
  }

  @Test func `another surface's value is not slowed by a loop`() throws {
    var house = try House(Policy(delay: .milliseconds(20)))
    try house.loop(for: 70_000, delay: 10)
    try house.bench.set("lamp/level", .number(35))
    house.bench.pass(20)
    house.step()
    #expect(house.values.last == 35)
  }

  @Test func `one of several values of a message is slowed, the others are not`() throws {
    var color = CoreBench.number("color")
    color.state = StateSource(topic: "color/state", value: .whole)
    var lamp = Self.lamp(Policy(delay: .milliseconds(300)))
    lamp.properties.append(color)
    var bench = CoreBench(isJournalled: false, devices: [lamp])
    let level = try bench.core.registry.index(of: "lamp/level")
    let other = try bench.core.registry.index(of: "lamp/color")
    for number in 0..<12 {
      let value = number.isMultiple(of: 2) ? 80.0 : 60
      try bench.core.change(
        [(level, .number(value)), (other, .number(Double(number)))],
        receivedOn: "settle/lamp/set",
        at: bench.now,
        ChangeOptions()
      )
      bench.pass(300)
      let published = bench.published()
      #expect(published.contains("publish color/set \(number)"))
      #expect(published.contains { $0.hasPrefix("publish level") } == (number < 10))
      bench.acknowledgeAll()
      bench.core.reported(level, .number(value), source: 0, at: bench.now)
      bench.pass(700)
      _ = bench.step()
      bench.acknowledgeAll()
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import LastOutTesting
import Testing

@testable import Routing

/// Messages that a bridge brings back, and senders that only look like one.
@Suite struct ReturnTests {
  /// A route, people who publish, and a bridge that may bring back what the route forwards.
  private struct House: ~Copyable {
    var bench: RouteBench
    /// How long the bridge takes; `nil` without one.
    var bridge: Duration?
    /// What is still to arrive on the input.
    private var arriving: [(at: Moment, payload: String)] = []
    private(set) var forwarded: [(at: Moment, payload: String)] = []
    private(set) var returned = 0

    init(bridge: Duration? = nil, adjust: (inout RouteConfiguration) -> Void) {
      bench = RouteBench(limit: 1000, adjust: adjust)
      self.bridge = bridge
    }

    /// A person publishes so much later than now.
    mutating func publish(_ payload: String, after delay: Duration = .zero) {
      arriving.append((bench.now.advanced(by: delay), payload))
    }

    /// Lets this time pass.
    mutating func pass(_ duration: Duration) {
      let end = bench.now.advanced(by: duration)
      while let next = next(), next <= end {
        bench.now = max(bench.now, next)
        bench.machine.advance(to: bench.now)
        receive()
        while let publish = bench.machine.nextPublish(for: 0, at: bench.now) {
          let payload = String(decoding: publish.payload, as: UTF8.self)
          forwarded.append((bench.now, payload))
          bench.machine.finish(publish.number, .acknowledged)
          if let bridge { arriving.append((bench.now.advanced(by: bridge), payload)) }
        }
      }
      bench.now = end
    }

    private mutating func receive() {
      let now = bench.now
      let due = arriving.filter { $0.at <= now }
      arriving.removeAll { $0.at <= now }
      for message in due {
        if case .returned(to: "out/a") = bench.receive(message.payload) { returned += 1 }
      }
    }

    private func next() -> Moment? {
      (arriving.map(\.at) + [bench.machine.nextDeadline].compactMap(\.self)).min()
    }

    func count(of payload: String) -> Int { forwarded.count { $0.payload == payload } }
  }

  private static func forwardsAll(_ route: inout RouteConfiguration) { route.policy = nil }

  @Test(arguments: [Duration.milliseconds(1), .milliseconds(50), .milliseconds(700)])
  func `a message that a bridge brings back stops, and the next ones leave once`(
    _ delay: Duration
  ) {
    for adjust in [Self.forwardsAll, { _ in }] {
      var house = House(bridge: delay, adjust: adjust)
      house.publish("X")
      house.pass(.seconds(60))
      let copies = house.count(of: "X")
      #expect(copies < 25)
      #expect(house.returned == 1)
      house.pass(.seconds(3600))
      #expect(house.count(of: "X") == copies)
      for _ in 0..<5 {
        for payload in ["X", "Y"] {
          house.publish(payload)
          house.pass(.seconds(5))
        }
      }
      #expect(house.count(of: "X") == copies + 5)
      #expect(house.count(of: "Y") == 5)
      #expect(house.returned == 11)
    }
  }

  @Test func `two messages that a bridge brings back stop both`() {
    var house = House(bridge: .milliseconds(20), adjust: Self.forwardsAll)
    house.publish("X")
    house.publish("Y", after: .milliseconds(7))
    house.pass(.seconds(60))
    let copies = house.forwarded.count
    #expect(copies < 100)
    house.pass(.seconds(3600))
    #expect(house.forwarded.count == copies)
    #expect(house.returned == 2)
  }

  @Test func `a person who repeats a message while a bridge brings it back is not lost`() {
    var house = House(bridge: .milliseconds(100), adjust: Self.forwardsAll)
    house.publish("X")
    house.pass(.seconds(60))
    let copies = house.count(of: "X")
    for place in 0..<20 { house.publish("X", after: .milliseconds(30 * place)) }
    house.pass(.seconds(60))
    #expect(house.count(of: "X") == copies + 20)
  }

  /// A knob, a button that is held, a sensor that reports each second.
  @Test(arguments: [5, 50, 333, 1000, 1900, 1999, 2500, 60_000])
  func `a sender that repeats itself loses nothing and hardly waits`(period: Int) {
    for adjust in [Self.forwardsAll, { $0.pass = [.payload(Array("X".utf8))] }] {
      var house = House(adjust: adjust)
      for place in 0..<200 { house.publish("X", after: .milliseconds(period * place)) }
      let start = house.bench.now
      house.pass(.milliseconds(period * 200 + 10_000))
      #expect(house.forwarded.count == 200)
      #expect(house.returned == 0)
      for (place, message) in house.forwarded.enumerated() {
        let due = start.advanced(by: .milliseconds(period * place))
        #expect(message.at <= due.advanced(by: .milliseconds(4 * period)))
      }
    }
  }

  @Test func `a sender that alternates loses nothing`() {
    var house = House(adjust: Self.forwardsAll)
    for place in 0..<200 {
      house.publish(["ON", "OFF", "DIM"][place % 3], after: .milliseconds(400 * place))
    }
    house.pass(.seconds(120))
    #expect(house.forwarded.count == 200)
    let expected = (0..<200).map { ["ON", "OFF", "DIM"][$0 % 3] }
    #expect(house.forwarded.map(\.payload) == expected)
  }

  @Test(arguments: 0..<40 as Range<UInt64>)
  func `people who press at random lose nothing, and the order stays`(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var house = House(adjust: Self.forwardsAll)
    var expected: [String] = []
    var at = Duration.zero
    for _ in 0..<300 {
      // Mostly quick, with pauses to take a knob again.
      let gap = Int.random(in: 0..<10, using: &random) < 8 ? 20...600 : 500...7000
      at += .milliseconds(Int.random(in: gap, using: &random))
      let payload = Int.random(in: 0..<10, using: &random) < 9 ? "STEP" : "TOGGLE"
      house.publish(payload, after: at)
      expected.append(payload)
    }
    house.pass(at + .seconds(10))
    #expect(house.forwarded.map(\.payload) == expected)
  }

  @Test func `once the bridge is gone, nothing is dropped`() {
    var house = House(bridge: .milliseconds(50), adjust: Self.forwardsAll)
    house.publish("X")
    house.pass(.seconds(60))
    let copies = house.forwarded.count
    house.bridge = nil
    house.publish("X")
    house.pass(.seconds(10))
    for place in 0..<50 { house.publish("X", after: .milliseconds(100 * place)) }
    house.pass(.seconds(60))
    #expect(house.forwarded.count == copies + 51)
    #expect(house.returned == 1)
  }

  @Test func `another value is not kept back by a pause, and a shutdown ends it`() {
    var bench = RouteBench(adjust: Self.forwardsAll)
    for _ in 0...ReturnDetector.suspicious {
      #expect(bench.leave() == [])
      bench.receive("X")
      guard bench.leave() == ["out/a X"] else { break }
      bench.pass(100)
    }
    #expect(bench.leave() == [])
    #expect(bench.machine.nextDeadline != nil)
    bench.receive("Y")
    #expect(bench.leave() == ["out/a X"])
    #expect(bench.leave() == ["out/a Y"])
    for _ in 0...ReturnDetector.suspicious {
      bench.pass(100)
      bench.receive("Y")
      guard bench.leave() == ["out/a Y"] else { break }
    }
    #expect(bench.leave() == [])
    bench.machine.flushAll(at: bench.now)
    #expect(bench.leave() == ["out/a Y"])
    #expect(bench.machine.isDrained == true)
  }

  @Test func `a message that its broker did not take is not awaited`() {
    var bench = RouteBench(adjust: Self.forwardsAll)
    for _ in 0..<50 {
      bench.receive("X")
      #expect(bench.leave(.refused("not authorized")) == ["out/a X"])
      bench.pass(100)
    }
  }
}

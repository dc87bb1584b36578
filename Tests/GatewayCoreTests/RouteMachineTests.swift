// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Testing

@testable import Routing

@Suite struct RouteMachineTests {
  private typealias Bench = RouteBench

  @Test func `only the last payload of a topic leaves, wildcards carried over`() {
    var bench = Bench()
    for payload in ["1", "2", "3"] { bench.receive(payload) }
    bench.receive("9", on: "in/b")
    #expect(bench.leave() == [])
    bench.pass(100)
    #expect(Set(bench.leave()) == ["out/a 3", "out/b 9"])
    #expect(bench.machine.statistics.collapsed == 2)
    #expect(bench.machine.nextDeadline == nil)
  }

  @Test func `a topic without a route is not remembered`() {
    var bench = Bench(limit: 2)
    for number in 0..<10 { #expect(bench.receive("1", on: "other/\(number)") == .noRoute) }
    #expect(bench.receive("1", on: "in/a") == .accepted)
    #expect(bench.receive("1", on: "in/b") == .accepted)
    #expect(bench.receive("1", on: "in/c") == .overflow)
  }

  @Test func `a retained message is ignored, unless everything is forwarded`() {
    var bench = Bench()
    #expect(bench.receive("1", retained: true) == .retained)
    var open = Bench { $0.policy = nil }
    #expect(open.receive("1", retained: true) == .accepted)
    #expect(open.publishes().map(\.retain) == [true])
  }

  @Test func `one message per topic is in flight; what settles meanwhile waits, newest wins`() {
    var bench = Bench()
    bench.receive("1")
    bench.pass(100)
    let leaving = bench.publishes()
    for payload in ["2", "3"] {
      bench.receive(payload)
      bench.pass(100)
    }
    #expect(bench.leave() == [])
    for publish in leaving { bench.machine.finish(publish.number, .acknowledged) }
    #expect(bench.leave() == ["out/a 3"])
    #expect(bench.machine.isDrained == true)
  }

  @Test func `a lost message goes again, unless something newer waits`() {
    var bench = Bench()
    bench.receive("1")
    bench.pass(100)
    #expect(bench.leave(.lost) == ["out/a 1"])
    let leaving = bench.publishes()
    bench.receive("2")
    bench.pass(100)
    for publish in leaving { bench.machine.finish(publish.number, .lost) }
    #expect(bench.leave() == ["out/a 2"])
    #expect(bench.leave() == [])
  }

  @Test func `what must leave at once flushes its topic and is never replaced`() {
    var bench = Bench { $0.pass = [.payload(Array("STOP".utf8))] }
    for payload in ["1", "STOP", "2", "STOP"] { bench.receive(payload) }
    var left: [String] = []
    for _ in 0..<4 { left += bench.leave() }
    #expect(left == ["out/a 1", "out/a STOP", "out/a 2", "out/a STOP"])
  }

  @Test func `what must leave at once counts against the limit`() {
    var bench = Bench(limit: 3) { $0.pass = [.payload(Array("STOP".utf8))] }
    let verdicts = (0..<5).map { _ in bench.receive("STOP") }
    #expect(verdicts == [.accepted, .accepted, .accepted, .overflow, .overflow])
    bench.pass(60_001)
    #expect(bench.receive("STOP") == .accepted)
    #expect(bench.machine.statistics.expired == 3)
  }

  @Test func `members of objects are merged in the quiet period, while waiting, and when lost`() {
    var bench = Bench { $0.mergesJSON = true }
    bench.receive(#"{"a":1,"b":1}"#)
    bench.receive(#"{"b":2}"#)
    bench.pass(100)
    let leaving = bench.publishes()
    #expect(leaving.map { String(decoding: $0.payload, as: UTF8.self) } == [#"{"a":1,"b":2}"#])
    bench.receive(#"{"b":3}"#)
    bench.pass(100)
    bench.receive(#"{"c":4}"#)
    bench.pass(100)
    for publish in leaving { bench.machine.finish(publish.number, .lost) }
    #expect(bench.leave() == [#"out/a {"a":1,"b":3,"c":4}"#])
  }

  @Test(arguments: [
    [#"{"a":1}"#, "ON"], ["ON", #"{"a":1}"#], [#"{"a":1}"#, "ON", #"{"b":2}"#, "OFF"],
  ])
  func `an object and another payload never replace each other`(payloads: [String]) {
    let expected = payloads.map { "out/a \($0)" }
    var pending = Bench { $0.mergesJSON = true }
    for payload in payloads { pending.receive(payload) }
    pending.pass(100)
    #expect(payloads.flatMap { _ in pending.leave() } == expected)
    #expect(pending.machine.isDrained == true)

    var waiting = Bench { $0.mergesJSON = true }
    for payload in payloads {
      waiting.receive(payload)
      waiting.pass(100)
    }
    #expect(payloads.flatMap { _ in waiting.leave() } == expected)

    var lost = Bench { $0.mergesJSON = true }
    lost.receive(payloads[0])
    lost.pass(100)
    let leaving = lost.publishes()
    for payload in payloads.dropFirst() {
      lost.receive(payload)
      lost.pass(100)
    }
    for publish in leaving { lost.machine.finish(publish.number, .lost) }
    #expect(payloads.flatMap { _ in lost.leave() } == expected)
  }

  @Test func `the older payload leaves at once when one of the other kind follows`() {
    var bench = Bench { $0.mergesJSON = true }
    for payload in [#"{"a":1}"#, #"{"b":2}"#, "OFF", "ON"] { bench.receive(payload) }
    #expect(bench.leave() == [#"out/a {"a":1,"b":2}"#])
    bench.pass(100)
    #expect(bench.leave() == ["out/a ON"])
  }

  @Test func `payloads of alternating kinds count against the limit`() {
    var bench = Bench(limit: 3) { $0.mergesJSON = true }
    let verdicts = (0..<10).map { bench.receive($0.isMultiple(of: 2) ? #"{"a":1}"# : "ON") }
    // From then on the kind that is pending is accepted, the other is rejected.
    #expect(verdicts.prefix(4).allSatisfy { $0 == .accepted })
    #expect(
      verdicts.dropFirst(4).map { $0 == .accepted } == [false, true, false, true, false, true]
    )
    bench.pass(100)
    #expect(bench.machine.waitingCount == 4)
    #expect(bench.receive(#"{"a":1}"#) == .overflow)
    #expect(bench.receive("OFF") == .accepted)
    bench.pass(100)
    #expect(bench.machine.waitingCount == 4)
  }

  @Test func `many messages of one topic leave in order`() {
    var bench = Bench(limit: 2000) { $0.policy = nil }
    for number in 0..<1000 { bench.receive("\(number)") }
    var left: [String] = []
    for _ in 0..<1000 { left += bench.leave() }
    #expect(left == (0..<1000).map { "out/a \($0)" })
    #expect(bench.machine.isDrained == true)
  }

  @Test func `a shutdown flushes every topic and names what is left`() {
    var bench = Bench()
    bench.receive("1")
    bench.machine.flushAll(at: bench.now)
    #expect(bench.machine.unsentTopics() == ["out/a"])
    #expect(bench.leave() == ["out/a 1"])
    #expect(bench.machine.unsentTopics() == [])
  }

  @Test func `a message keeps its number after 2^28 others`() {
    var bench = Bench()
    bench.receive("1")
    bench.pass(100)
    #expect(bench.leave() == ["out/a 1"])
    bench.machine.outputs[KeyIndex(0)].flight = (1 << 28) - 1
    for number in 2...4 {
      bench.receive("\(number)")
      bench.pass(100)
      let leaving = bench.publishes()
      #expect(leaving.map(\.number) == [UInt64((1 << 28) + number - 2) << 32])
      for publish in leaving { bench.machine.finish(publish.number, .acknowledged) }
      #expect(bench.machine.isDrained == true)
    }
  }
}

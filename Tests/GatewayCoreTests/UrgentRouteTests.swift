// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Testing

@testable import Routing

/// Urgent messages of routes, messages without a number, and colors that merge.
@Suite struct UrgentRouteTests {
  private typealias Bench = RouteBench

  private static func stops(_ route: inout RouteConfiguration) {
    route.mergesJSON = true
    route.urgent = [.payload(Array("STOP".utf8))]
    if let state = JSONPointer("/state") { route.urgent.append(.value(state, "STOP")) }
  }

  @Test(arguments: ["STOP", #"{"state":"STOP"}"#])
  func `an urgent message is sent at once, and the pending value is dropped`(stop: String) {
    var bench = Bench(adjust: Self.stops)
    bench.receive(#"{"position":40}"#)
    bench.receive(stop)
    #expect(bench.leave() == ["out/a \(stop)"])
    bench.pass(100)
    #expect(bench.leave() == [])
    #expect(bench.machine.statistics.collapsed == 1)
    #expect(bench.machine.isDrained == true)
  }

  @Test func `another value of the same member is not urgent`() {
    var bench = Bench(adjust: Self.stops)
    bench.receive(#"{"state":"OPEN"}"#)
    #expect(bench.leave() == [])
    bench.pass(100)
    #expect(bench.leave() == [#"out/a {"state":"OPEN"}"#])
  }

  @Test func `an urgent message drops what has settled and waits, and is sent before other topics`()
  {
    var bench = Bench(adjust: Self.stops)
    for topic in ["in/b", "in/c"] { bench.receive("1", on: topic) }
    bench.pass(100)
    bench.receive("STOP")
    #expect(bench.leave() == ["out/a STOP", "out/b 1", "out/c 1"])
    bench.receive(#"{"position":1}"#)
    bench.pass(100)
    bench.receive("STOP")
    #expect(bench.leave() == ["out/a STOP"])
    #expect(bench.leave() == [])
  }

  @Test func `a value that was lost does not follow an urgent message, nor precede it`() {
    var bench = Bench(adjust: Self.stops)
    bench.receive(#"{"position":40}"#)
    bench.pass(100)
    let leaving = bench.publishes()
    bench.receive("STOP")
    #expect(bench.leave() == [])
    for publish in leaving { bench.machine.finish(publish.number, .lost) }
    #expect(bench.leave(.lost) == ["out/a STOP"])
    #expect(bench.leave() == ["out/a STOP"])
    #expect(bench.machine.isDrained == true)
  }

  @Test func `there is room for an urgent message when there is none for others`() {
    var bench = Bench(limit: 2) {
      Self.stops(&$0)
      $0.pass = [.payload(Array("TOGGLE".utf8))]
    }
    for _ in 0..<2 { bench.receive("TOGGLE", on: "in/b") }
    #expect(bench.receive("TOGGLE") == .overflow)
    for _ in 0..<3 { #expect(bench.receive("STOP") == .accepted) }
    #expect(bench.machine.waitingCount == 3)
  }

  @Test func `of large messages that are forwarded only the newest of a topic waits`() {
    var bench = Bench { $0.policy = nil }
    for payload in ["large one", "small", "large two", "tiny", "large three"] {
      bench.receive(payload)
    }
    bench.receive("large four", on: "in/b")
    var left: [String] = []
    for _ in 0..<4 { left += bench.leave() }
    #expect(
      left == ["out/a small", "out/b large four", "out/a tiny", "out/a large three"]
    )
    #expect(bench.machine.isDrained == true)
  }

  @Test(arguments: [
    ("ON", 20), (#"{"state":"ON"}"#, 20), ("40", 100), (#"{"brightness":40}"#, 100),
    ("50%", 100), ("#ffaabb", 100), (##"{"color":"#ffaabb"}"##, 100),
    (#"{"color":"255,0,0"}"#, 100),
  ])
  func `a message without a number has the shorter quiet period`(payload: String, delay: Int) {
    var bench = Bench {
      $0.mergesJSON = true
      $0.wordDelay = .milliseconds(20)
    }
    bench.receive(payload)
    bench.pass(delay - 1)
    #expect(bench.leave() == [])
    bench.pass(1)
    #expect(bench.leave() == ["out/a \(payload)"])
  }

  @Test func `a word joins a number that is pending, and waits as long as it does`() {
    var bench = Bench {
      $0.mergesJSON = true
      $0.wordDelay = .milliseconds(20)
    }
    bench.receive(#"{"brightness":40}"#)
    bench.receive(#"{"state":"ON"}"#)
    bench.pass(99)
    #expect(bench.leave() == [])
    bench.pass(1)
    #expect(bench.leave() == [#"out/a {"brightness":40,"state":"ON"}"#])
  }

  private static func color(_ parts: JSONValue) -> JSONValue { .object(["color": parts]) }

  @Test(arguments: [
    (
      color(.object(["hue": 1])), color(.object(["saturation": 2])),
      color(.object(["hue": 1, "saturation": 2]))
    ),
    (
      color(.object(["h": 1, "s": 2])), color(.object(["h": 3])),
      color(.object(["h": 3, "s": 2]))
    ),
    (color(.object(["x": 1, "y": 2])), color(.object(["hue": 3])), color(.object(["hue": 3]))),
    (color(.object(["hex": "#fff"])), color(.object(["r": 1])), color(.object(["r": 1]))),
    (
      .object(["color_temp": 300, "state": "ON"]), color(.object(["h": 1])),
      .object(["state": "ON", "color": .object(["h": 1])])
    ),
    (color(.object(["h": 1])), .object(["color_temp": 300]), .object(["color_temp": 300])),
    (.object(["state": "OFF"]), .object(["brightness": 9]), .object(["brightness": 9])),
    (
      .object(["brightness": 9]), .object(["state": "OFF"]),
      .object(["brightness": 9, "state": "OFF"])
    ),
    (
      .object(["state": "OFF"]), .object(["brightness": 0]),
      .object(["state": "OFF", "brightness": 0])
    ),
    (
      .object(["options": .object(["a": 1])]), .object(["options": .object(["b": 2])]),
      .object(["options": .object(["b": 2])])
    ),
  ])
  func `parts of one color complete each other, and what contradicts something newer is dropped`(
    older: JSONValue,
    newer: JSONValue,
    merged: JSONValue
  ) {
    guard case .object(let old) = older, case .object(let new) = newer else {
      Issue.record("objects are compared")
      return
    }
    #expect(JSONValue.object(MergedMembers.newest(old, new)) == merged)
  }
}

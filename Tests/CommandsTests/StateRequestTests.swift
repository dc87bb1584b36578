// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing

/// Requests for the states of devices: they have a lane when no command waits for it.
struct StateRequestTests {
  /// A property whose device is asked by an object on the device's own topic.
  private static func lit(_ id: String, on topic: String) -> Property {
    .seen(id) { property in
      property.state?.get = StateRequest(topic: topic, members: [.init(id, .string(""))])
    }
  }

  private static func plain(_ id: String, topic: String, _ text: String = "") -> Property {
    .seen(id) { $0.state?.get = StateRequest(topic: topic, payload: Array(text.utf8)) }
  }

  private static func lamp(_ number: Int, lane: String? = "mesh") -> Device {
    .of(
      "d\(number)",
      lane: lane,
      [lit("level", on: "d\(number)/get"), lit("warmth", on: "d\(number)/get")]
    )
  }

  private static func bench(_ devices: [Device], _ limits: LaneLimits? = nil) -> Bench {
    var settings = CommandSettings()
    settings.lanes["mesh"] = limits
    return Bench(devices, settings: settings)
  }

  @Test func `one message asks for all properties of a device that share a topic`() {
    var bench = Self.bench([Self.lamp(0)])
    #expect(bench.requests() == [])
    bench.pass(500)
    #expect(bench.requests() == [#"d0/get {"level":"","warmth":""}"#])
    bench.pass(10_000)
    #expect(bench.requests() == [])
    #expect(bench.wait() == nil)
  }

  @Test func `requests that cannot be merged are messages of their own, equal ones are one`() {
    var bench = Self.bench([
      .of(
        "d",
        [
          Self.plain("a", topic: "x"), Self.plain("b", topic: "x"),
          Self.plain("c", topic: "x", "?"), Self.plain("e", topic: "y"),
          .seen("f") {
            $0.state?.get = StateRequest(topic: "z", members: [.init("id", .integer(1))])
          },
          .seen("g") {
            $0.state?.get = StateRequest(topic: "z", members: [.init("id", .integer(2))])
          },
        ]
      )
    ])
    bench.pass(500)
    #expect(bench.requests() == ["x ", "x ?", "y ", #"z {"id":1}"#, #"z {"id":2}"#])
  }

  @Test func `a property with several sources is asked at each`() {
    var bench = Self.bench([
      .of(
        "d",
        [
          .seen("a") {
            $0.states = ["one", "two"].map {
              let request = StateRequest(topic: "\($0)/get", payload: [])
              return StateSource(topic: $0, value: .whole, get: request)
            }
          }
        ]
      )
    ])
    bench.pass(500)
    #expect(bench.requests() == ["one/get ", "two/get "])
  }

  @Test func `what is retained is not asked for`() throws {
    var bench = Self.bench([Self.lamp(0), Self.lamp(1)])
    bench.pass(100)
    try bench.report("d0/level", 3)
    try bench.report("d1/level", 3)
    try bench.report("d1/warmth", 3)
    bench.pass(400)
    #expect(bench.requests() == [#"d0/get {"warmth":""}"#])
  }

  @Test func `requests keep to the rate of their lane`() {
    var bench = Self.bench((0..<4).map { Self.lamp($0) }, LaneLimits(rate: 5, burst: 1))
    #expect(bench.wait() == 500)
    bench.pass(500)
    #expect(bench.requests().count == 1)
    for _ in 0..<3 {
      #expect(bench.wait() == 200)
      bench.pass(199)
      #expect(bench.requests().count == 0)
      bench.pass(1)
      #expect(bench.requests().count == 1)
    }
    #expect(bench.wait() == nil)
  }

  @Test func `a command that waits goes before every request`() throws {
    var bench = Self.bench((0..<3).map { Self.lamp($0) }, LaneLimits(rate: 5, burst: 1))
    bench.pass(500)
    #expect(bench.requests().count == 1)
    try bench.set("d0/level", 7, now: true)
    try bench.set("d1/level", 7, now: true)
    for _ in 0..<2 {
      bench.pass(200)
      #expect(bench.send() == ["7"])
      #expect(bench.requests().count == 0)
    }
    bench.pass(200)
    #expect(bench.requests().count == 1)
  }

  @Test func `a request has room in the window until its answer, and leaves some for commands`()
    throws
  {
    let window = LaneLimits.Window(start: 3, min: 3, max: 3)
    var bench = Self.bench((0..<6).map { Self.lamp($0) }, LaneLimits(window: window))
    bench.pass(500)
    #expect(bench.requests().count == 2)
    try bench.set("d5/level", 7, now: true)
    #expect(bench.send() == ["7"])
    #expect(bench.requests().count == 0)
    bench.pass(200)
    try bench.report("d0/level", 3)
    #expect(bench.requests().count == 0)
    try bench.report("d5/level", 7)
    #expect(bench.requests().count == 1)
    // Those that do not answer give up their room, one after the other: the first after the time
    // of a lane that has measured nothing, the others after that of the command, and four times
    // its deviation.
    for wait in [300, 300, 300] {
      #expect(bench.wait() == wait)
      bench.pass(wait)
      #expect(bench.requests().count == 1)
    }
    bench.pass(5000)
    #expect(bench.requests().count == 0)
    #expect(bench.wait() == nil)
    #expect(bench.machine.sendQueue.laneStatuses.first?.inFlight == 0)
  }

  @Test func `a lane that is busy does not hold up another, nor devices without one`() throws {
    var bench = Self.bench(
      [Self.lamp(0), Self.lamp(1), Self.lamp(2, lane: nil), Self.lamp(3, lane: nil)],
      LaneLimits(rate: 1, burst: 1)
    )
    bench.pass(500)
    #expect(bench.requests().map { $0.prefix(2) }.sorted() == ["d0", "d2", "d3"])
  }

  @Test func `ten thousand devices are all asked`() {
    var bench = Self.bench((0..<10_000).map { Self.lamp($0, lane: nil) })
    bench.pass(500)
    #expect(Set(bench.requests()).count == 10_000)
  }

  @Test func `a step that needs the state asks again, at once and first`() throws {
    var bench = Self.bench((0..<3).map { Self.lamp($0) }, LaneLimits(rate: 5, burst: 1))
    try bench.step("d2/level", 5)
    #expect(bench.requests() == [#"d2/get {"level":"","warmth":""}"#])
    bench.pass(500)
    #expect(bench.requests().count == 1)
    bench.pass(200)
    #expect(bench.requests().count == 1)
    bench.pass(1300)  // The step was rejected.
    #expect(bench.requests() == [])
    try bench.step("d2/level", 5)
    try bench.step("d2/level", 5)
    #expect(bench.requests() == [#"d2/get {"level":""}"#])
    try bench.report("d2/level", 40)
    #expect(try bench.target("d2/level") == 50)
    bench.pass(200)
    #expect(bench.requests() == [])
  }

  @Test func `a device that is away is asked when it is back`() {
    var bench = Self.bench([Self.lamp(0)])
    bench.online(false)
    bench.pass(5000)
    #expect(bench.requests() == [])
    bench.online(true)
    #expect(bench.requests().count == 1)
    bench.online(false)
    bench.online(true)
    #expect(bench.requests() == [])
  }

  @Test func `each connection asks again`() {
    var bench = Self.bench([Self.lamp(0)], LaneLimits(window: .auto))
    bench.pass(500)
    #expect(bench.requests().count == 1)
    bench.connect(false)
    #expect(bench.machine.sendQueue.laneStatuses.first?.inFlight == 0)
    #expect(bench.wait() == nil)
    bench.connect(true)
    bench.pass(499)
    #expect(bench.requests().count == 0)
    bench.pass(1)
    #expect(bench.requests().count == 1)
  }

  @Test func `a shutdown asks for nothing`() {
    var bench = Self.bench([Self.lamp(0)])
    bench.pass(500)
    bench.machine.close(at: bench.now)
    #expect(bench.requests() == [])
    #expect(bench.wait() == nil)
  }

  @Test func `a reload moves what waits to the new lane, and asks for what is new`() {
    var bench = Self.bench([Self.lamp(0), Self.lamp(1)], LaneLimits(rate: 1, burst: 1))
    bench.pass(500)
    #expect(bench.requests().count == 1)
    let registry = Registry(
      [Self.lamp(0), Self.lamp(1, lane: nil), Self.lamp(2)],
      continuing: bench.machine.registry
    )
    bench.machine.beginReload(registry)
    while bench.machine.continueReload(keys: 10, at: bench.now) != .finished {}
    #expect(bench.requests() == [#"d1/get {"level":"","warmth":""}"#])
    bench.machine.requestStates(of: registry.indices(ofDevice: 2).map { KeyIndex($0) })
    bench.pass(1000)
    #expect(bench.requests() == [#"d2/get {"level":"","warmth":""}"#])
  }
}

extension Bench {
  /// The topics and payloads of all requests that may be sent now.
  fileprivate mutating func requests() -> [String] {
    var found: [String] = []
    while let request = machine.nextRequest(at: now) {
      found.append("\(request.topic) \(String(decoding: request.payload, as: UTF8.self))")
    }
    return found
  }
}

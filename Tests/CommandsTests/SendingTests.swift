// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

@Suite struct SendingTests {
  // MARK: - Absent parties

  @Test(arguments: [true, false])
  func `one value per key is held while a party is absent, then it leaves`(
    isBroker: Bool
  ) throws {
    var bench = Bench([.of("d", [.level()])])
    if isBroker { bench.connect(false) } else { bench.online(false) }
    for value in 1...5 { try bench.set("level", .number(Double(value)), now: true) }
    #expect(bench.machine.pendingCount == 1)
    #expect(PendingStatus(of: try bench.key("level"), in: bench.machine)?.collapsed == 4)
    #expect(
      PendingStatus(of: try bench.key("level"), in: bench.machine)?.waits == .offline
    )
    #expect(bench.wait() == 60_000)
    if isBroker { bench.connect(true) } else { bench.online(true) }
    #expect(bench.wait() == nil)
    #expect(bench.send() == ["5"])
    #expect(bench.dequeueEvents().last?.collapsed == 4)
    #expect(bench.send() == [])
  }

  @Test func `the ttl counts from the last change; then the value has expired`() throws {
    var bench = Bench(.seen())
    try bench.report("level", 5)
    bench.connect(false)
    try bench.set("level", 10, now: true)
    bench.pass(30_000)
    try bench.set("level", 20, now: true)
    bench.pass(59_999)
    #expect(bench.machine.pendingCount == 1)
    bench.pass(1)
    #expect(bench.told().last == "level expired 20: the broker is not connected")
    #expect(try bench.target("level") == 5)
    bench.connect(true)
    #expect(bench.payloads() == [])
  }

  @Test func `a change may bring its own ttl, and the broker is told what is left of it`() throws {
    var bench = Bench(.level())
    try bench.set("level", 10, ttl: .seconds(4))
    bench.pass(300)
    #expect(bench.publishes().map(\.expiry) == [.milliseconds(3700)])
    bench.connect(false)
    try bench.set("level", 10, ttl: .seconds(1), now: true)
    bench.pass(1000)
    #expect(bench.told().last == "level expired 10: the broker is not connected")
  }

  @Test func `time spent in a lane while all are there is not held against a value`() throws {
    var settings = CommandSettings()
    settings.lanes["bus"] = LaneLimits(rate: 0.5, burst: 1)
    var bench = Bench(
      [.of("d", lane: "bus", [.level("a"), .level("b")])],
      settings: settings
    )
    try bench.set("a", 1, now: true)
    try bench.set("b", 2, ttl: .seconds(1), now: true)
    bench.send()
    bench.pass(2000)
    let leaving = bench.publishes()
    #expect(leaving.map(\.expiry) == [.seconds(1)])
  }

  @Test func `a lost command goes again, once, unless something newer waits`() throws {
    var bench = Bench(.level("a"), .level("b"))
    try bench.set("a", 1, now: true)
    try bench.set("b", 1, now: true)
    let leaving = bench.publishes()
    try bench.set("b", 2)
    bench.finish(leaving, .lost)
    bench.connect(false)
    bench.pass(1000)
    bench.connect(true)
    #expect(Set(bench.send()) == ["1", "2"])
    #expect(bench.send() == [])
    let sent = bench.dequeueEvents().filter { $0.phase == .sent }
    #expect(Set(sent.map(\.attempt)) == [1, 2])
  }

  @Test func `a lost command that arrived after all is confirmed, not sent again`() throws {
    var bench = Bench(.seen())
    try bench.report("level", 1)
    try bench.set("level", 40, now: true)
    bench.finish(bench.publishes(), .lost)
    bench.connect(false)
    try bench.report("level", 40)
    bench.connect(true)
    #expect(bench.payloads() == [])
    #expect(bench.told().last == "level confirmed 40")
  }

  @Test func `a hand at the device ends what waits to be sent once more`() throws {
    var bench = Bench(.seen())
    try bench.report("level", 1)
    try bench.set("level", 40, now: true)
    bench.finish(bench.publishes(), .lost)
    try bench.report("level", 90)
    #expect(bench.told().last == "level superseded 40: changed at the device")
    #expect(bench.payloads() == [])
    #expect(try bench.target("level") == 90)
  }

  @Test func `every availability source must hold; silence means online`() throws {
    var device = Device.of("d", [.level()])
    device.availability.append(device.availability[0])
    var bench = Bench([device])
    try bench.set("level", 1, now: true)
    #expect(bench.send() == ["1"])
    bench.online(false)
    bench.machine.availabilityChanged(of: 0, source: 1, isOnline: true, at: bench.now)
    try bench.set("level", 2, now: true)
    #expect(bench.send() == [])
    bench.online(true)
    #expect(bench.send() == ["2"])
  }

  @Test func `nothing grows while the broker is away`() throws {
    var bench = Bench([.of("d", [.level(delay: 0)])], isConnected: false)
    for value in 0..<5000 {
      try bench.set("level", .number(Double(value % 100)), ttl: .seconds(3600))
      bench.pass(1)
    }
    bench.connect(true)
    #expect(bench.send() == ["99"])
    #expect(bench.wait() == nil)
  }

  // MARK: - Lanes

  private static func bus(_ rate: Double, _ burst: Int) -> CommandSettings {
    var settings = CommandSettings()
    settings.lanes["bus"] = LaneLimits(rate: rate, burst: burst)
    return settings
  }

  @Test func `a lane lets a burst through, then its rate, never early`() throws {
    let names = (0..<8).map { "p\($0)" }
    var bench = Bench(
      [.of("d", lane: "bus", names.map { .level($0) })],
      settings: Self.bus(10, 3)
    )
    for name in names { try bench.set(name, 1, now: true) }
    #expect(bench.send().count == 3)
    #expect(bench.wait() == 100)
    bench.pass(99)
    #expect(bench.send().count == 0)
    bench.pass(1)
    #expect(bench.send().count == 1)
    bench.pass(300)
    #expect(bench.send().count == 3)
    bench.pass(1000)
    #expect(bench.send().count == 1)
    #expect(bench.wait() == nil)
  }

  @Test func `devices of a lane take turns`() throws {
    var bench = Bench(
      [
        .of("a", lane: "bus", (0..<4).map { .level("p\($0)") }),
        .of("b", lane: "bus", [.level()]),
      ],
      settings: Self.bus(10, 1)
    )
    for number in 0..<4 { try bench.set("a/p\(number)", 1, now: true) }
    try bench.set("b/level", 2, now: true)
    var order: [String] = []
    for _ in 0..<5 {
      order += bench.send()
      bench.pass(100)
    }
    #expect(order == ["1", "2", "1", "1", "1"])
  }

  /// Two thousand devices whose values have settled at one instant, and one that has not changed.
  private func crowd() throws -> Bench {
    var bench = Bench((0...2000).map { .of("d\($0)", [.level()]) })
    for number in 0..<2000 { try bench.set("d\(number)/level", .number(Double(number))) }
    bench.pass(300)
    return bench
  }

  private func departures(_ bench: inout Bench, _ count: Int) -> [String] {
    (0..<count).compactMap { _ in
      let leaving = bench.machine.nextPublish(at: bench.now)
      return leaving.map { bench.machine.registry[$0.keys[0]].key }
    }
  }

  @Test func `many keys that settle at one instant do not hold up the next one`() throws {
    var bench = try crowd()
    _ = departures(&bench, 40)
    try bench.set("d2000/level", 7, now: true)
    #expect(departures(&bench, 2).contains("d2000/level"))
  }

  @Test func `the longest waiting key gets half of the endpoint, however many arrive later`() throws
  {
    var bench = try crowd()
    var left: [String] = []
    for number in 0..<3000 {
      // Someone who has left comes again, time and again.
      if let last = left.last { try bench.set(last, .number(Double(3000 + number)), now: true) }
      left += departures(&bench, 1)
    }
    let oldest = (0..<1000).map { "d\($0)/level" }
    let places = oldest.compactMap { left.firstIndex(of: $0) }
    #expect(places.count == oldest.count)
    #expect(places == places.sorted())
    #expect(zip(places, 0...).allSatisfy { $0 <= 2 * $1 + 1 })
  }

  @Test func `a few keys leave in the order in which they settled`() throws {
    var bench = Bench((0..<64).map { .of("d\($0)", [.level()]) })
    for number in 0..<64 { try bench.set("d\(number)/level", .number(Double(number))) }
    bench.pass(300)
    #expect(departures(&bench, 64) == (0..<64).map { "d\($0)/level" })
  }

  @Test func `urgent values overtake their lane's queue, but take a token`() throws {
    var bench = Bench(
      [
        .of("a", lane: "bus", [.level("p"), .level("q")]),
        .of("b", lane: "bus", [.level("stop") { $0.urgent = [0] }]),
      ],
      settings: Self.bus(10, 1)
    )
    try bench.set("a/p", 1, now: true)
    try bench.set("a/q", 2, now: true)
    #expect(bench.send() == ["1"])
    try bench.set("b/stop", 0)
    #expect(bench.send() == [])
    bench.pass(100)
    #expect(bench.send() == ["0"])
    bench.pass(100)
    #expect(bench.send() == ["2"])
  }

  @Test func `an absent device does not delay the others of its lane, nor take their tokens`()
    throws
  {
    var bench = Bench(
      [
        .of("a", lane: "bus", (0..<9).map { .level("p\($0)") }), .of("b", lane: "bus", [.level()]),
      ],
      settings: Self.bus(1, 1)
    )
    for number in 0..<9 { try bench.set("a/p\(number)", 1, now: true) }
    bench.online(false)
    try bench.set("b/level", 2, now: true)
    #expect(bench.send() == ["2"])
    #expect(bench.wait() == 60_000)
  }

  @Test func `a full lane does not hold up another`() throws {
    var bench = Bench(
      [.of("a", lane: "bus", [.level("p"), .level("q")]), .of("b", [.level()])],
      settings: Self.bus(1, 1)
    )
    try bench.set("a/p", 1, now: true)
    try bench.set("a/q", 2, now: true)
    try bench.set("b/level", 3, now: true)
    #expect(Set(bench.send()) == ["1", "3"])
    #expect(PendingStatus(of: try bench.key("a/q"), in: bench.machine)?.waits == .lane)
  }

  @Test func `a value that is replaced in its lane keeps the place`() throws {
    var bench = Bench(
      [.of("a", lane: "bus", [.level("p"), .level("q"), .level("r")])],
      settings: Self.bus(10, 1)
    )
    for name in ["a/p", "a/q", "a/r"] { try bench.set(name, 1, now: true) }
    bench.send()
    try bench.set("a/q", 2, now: true)
    bench.pass(100)
    #expect(bench.send() == ["2"])
    #expect(bench.dequeueEvents().last?.collapsed == 1)
  }

  @Test func `what returns with its device leaves in the order in which it was asked for`() throws {
    var bench = Bench([.of("d", [.level("a"), .level("b"), .level("c")])])
    bench.online(false)
    for (name, value) in [("c", 1), ("a", 2), ("b", 3)] as [(String, Value)] {
      try bench.set(name, value, now: true)
    }
    bench.online(true)
    #expect(bench.send() == ["1", "2", "3"])
  }

  // MARK: - Shutdown

  @Test func `closing flushes every key, past the lanes, and takes nothing more`() throws {
    let names = (0..<50).map { "p\($0)" }
    var bench = Bench(
      [.of("d", lane: "bus", names.map { .level($0) })],
      settings: Self.bus(1, 1)
    )
    for name in names { try bench.set(name, 1) }
    bench.machine.close(at: bench.now)
    #expect(bench.isDrained == false)
    #expect(bench.machine.unsentKeys().count == 50)
    #expect(throws: ValidationError.shuttingDown) { try bench.set("p0", 2) }
    #expect(bench.send().count == 50)
    #expect(bench.isDrained == true)
    #expect(bench.hasUnsent == false)
    #expect(bench.machine.unsentKeys() == [])
    #expect(bench.wait() == nil)
  }

  @Test func `values for absent devices count as not sent, and hold nobody up`() throws {
    var bench = Bench([.of("a", [.level()]), .of("b", [.level()])])
    bench.online(false)
    try bench.set("a/level", 1)
    try bench.set("b/level", 2)
    bench.machine.close(at: bench.now)
    #expect(bench.send() == ["2"])
    #expect(bench.isDrained == true)
    #expect(bench.machine.unsentKeys() == [try bench.key("a/level")])
  }

  @Test func `a value behind an acknowledgement still leaves after closing`() throws {
    var bench = Bench(.level())
    try bench.set("level", 1, now: true)
    let leaving = bench.publishes()
    try bench.set("level", 2)
    bench.machine.close(at: bench.now)
    bench.finish(leaving)
    #expect(bench.isDrained == false)
    #expect(bench.send() == ["2"])
  }

  @Test func `closing refuses steps that wait for a state, and makes no retries`() throws {
    var bench = Bench(
      .seen("a") {
        $0.state = StateSource(
          topic: "s",
          value: .whole,
          get: StateRequest(topic: "g", payload: [])
        )
      },
      .seen("b", retries: 3)
    )
    try bench.step("a", 5)
    try bench.set("b", 5, now: true)
    bench.send()
    _ = bench.told()
    bench.machine.close(at: bench.now)
    #expect(bench.told() == ["a rejected: the gateway is shutting down"])
    bench.pass(5000)
    #expect(bench.told() == ["b failed 5: not confirmed within 5s"])
    #expect(bench.payloads() == [])
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

/// What `pending` says of each value: what it waits for, and for how long.
@Suite struct PendingTests {
  private static func bus(_ rate: Double, _ burst: Int) -> CommandSettings {
    var settings = CommandSettings()
    settings.lanes["bus"] = LaneLimits(rate: rate, burst: burst)
    return settings
  }

  /// Every key that waits, such as `a/p lane 100`, with milliseconds from now.
  private func rows(_ bench: borrowing Bench) -> [String] {
    let registry = bench.machine.registry
    let keys = registry.properties.indices.map { KeyIndex(Int32($0)) }
    return PendingStatus.all(of: keys, in: bench.machine, at: bench.now).map { status in
      let due = status.due.map { due in
        String(bench.now.duration(to: due).wholeNanoseconds / 1_000_000)
      }
      return "\(registry[status.key].key) \(status.waits.rawValue) \(due ?? "?")"
    }
  }

  @Test func `quiet: until the quiet period or max_wait ends`() throws {
    var bench = Bench(
      .level("a"),
      .level("b") {
        $0.policy = Policy(delay: .milliseconds(300), maxWait: .milliseconds(400))
      }
    )
    try bench.set("a", 1)
    try bench.set("b", 1)
    bench.pass(200)
    try bench.set("a", 2)
    try bench.set("b", 2)
    #expect(rows(bench) == ["d/a quiet 300", "d/b quiet 200"])
    bench.pass(150)
    #expect(rows(bench) == ["d/a quiet 150", "d/b quiet 50"])
  }

  @Test func `quiet comes first, and counts what waits behind it`() throws {
    var bench = Bench([.of("d", [.level()])])
    bench.online(false)
    try bench.set("level", 1, now: true)
    try bench.set("level", 2)
    #expect(rows(bench) == ["d/level quiet 300"])
    #expect(PendingStatus(of: try bench.key("level"), in: bench.machine)?.collapsed == 1)
    bench.pass(300)
    #expect(rows(bench) == ["d/level offline 59700"])
  }

  @Test func `lane: until its token comes, device by device in turn`() throws {
    var bench = Bench(
      [
        .of("a", lane: "bus", [.level("p"), .level("q"), .level("r")]),
        .of("b", lane: "bus", [.level("p"), .level("q")]),
      ],
      settings: Self.bus(10, 2)
    )
    for key in ["a/p", "a/q", "a/r", "b/p", "b/q"] { try bench.set(key, 1, now: true) }
    // What has a token, and waits for room at the broker only, is due now.
    #expect(
      rows(bench) == ["a/p lane 0", "a/q lane 100", "a/r lane 300", "b/p lane 0", "b/q lane 200"]
    )
    bench.send()
    bench.pass(30)
    #expect(rows(bench) == ["a/q lane 70", "a/r lane 270", "b/q lane 170"])
  }

  @Test func `lane: what is said comes true`() throws {
    var bench = Bench(
      (0..<4).map { device in
        .of("d\(device)", lane: "bus", (0...device).map { .level("p\($0)") })
      },
      settings: Self.bus(3, 2)
    )
    for device in 0..<4 {
      for number in 0...device { try bench.set("d\(device)/p\(number)", 1, now: true) }
    }
    let keys = bench.machine.registry.properties.indices.map { KeyIndex(Int32($0)) }
    var promised: [KeyIndex: Moment] = [:]
    for status in PendingStatus.all(of: keys, in: bench.machine, at: bench.now) {
      promised[status.key] = status.due
    }
    #expect(promised.count == 10)
    var left: [KeyIndex: Moment] = [:]
    while left.count < 10 {
      for publish in bench.publishes() {
        for key in publish.keys { left[key] = bench.now }
        bench.finish([publish])
      }
      guard left.count < 10 else { break }
      let wait = bench.machine.nextDeadline(after: bench.now)
      bench.pass(to: try #require(wait))
    }
    #expect(left == promised)
  }

  @Test func `lane: an urgent value goes ahead`() throws {
    var bench = Bench(
      [
        .of(
          "a",
          lane: "bus",
          [
            .level("p"), .level("q"),
            .word("mode", kind: .choice(["off", "on"])) { $0.urgent = [.text("off")] },
          ]
        )
      ],
      settings: Self.bus(1, 1)
    )
    for key in ["a/p", "a/q"] { try bench.set(key, 1, now: true) }
    bench.send()
    try bench.set("a/mode", .text("off"))
    #expect(rows(bench) == ["a/q lane 2000", "a/mode lane 1000"])
  }

  @Test func `lane: properties that leave in one message share its token`() throws {
    func lamp(_ id: String) -> Device {
      let properties = ["power", "level", "heat"].map { name in
        Property.level(name) {
          $0.command = CommandEndpoint(
            topic: "lamp/set",
            payload: PayloadTemplate(.object([.init(name, "$value")]))
          )
        }
      }
      var device = Device.of(id, lane: "bus", properties)
      device.merge = true
      return device
    }
    var bench = Bench([lamp("a"), lamp("b")], settings: Self.bus(1, 1))
    for key in ["a/power", "a/level", "b/power", "b/level"] {
      try bench.set(key, 1, now: true)
    }
    #expect(
      rows(bench) == ["a/power lane 0", "a/level lane 0", "b/power lane 1000", "b/level lane 1000"]
    )
  }

  @Test func `lane: without a limit there is nothing to wait for but the broker`() throws {
    var bench = Bench(.level())
    try bench.set("level", 1, now: true)
    #expect(rows(bench) == ["d/level lane 0"])
  }

  @Test func `in flight: until the broker answers, whenever that is`() throws {
    var bench = Bench(.level())
    try bench.set("level", 1, now: true)
    let leaving = bench.publishes()
    #expect(rows(bench) == [])
    try bench.set("level", 2, now: true)
    #expect(rows(bench) == ["d/level in_flight ?"])
    bench.finish(leaving)
    #expect(rows(bench) == ["d/level lane 0"])
  }

  @Test(arguments: [true, false])
  func `offline: until the value expires, whichever party is away`(isBroker: Bool) throws {
    var bench = Bench([.of("d", lane: "bus", [.level()])], settings: Self.bus(1, 1))
    if isBroker { bench.connect(false) } else { bench.online(false) }
    try bench.set("level", 1, ttl: .seconds(30), now: true)
    bench.pass(1000)
    #expect(rows(bench) == ["d/level offline 29000"])
    if isBroker { bench.connect(true) } else { bench.online(true) }
    #expect(rows(bench) == ["d/level lane 0"])
  }
}

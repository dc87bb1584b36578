// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

/// What the command machine keeps in flight in a lane with a window.
struct WindowedLaneTests {
  private static func bench(
    _ count: Int,
    window: LaneLimits.Window = .init(start: 2, min: 2, max: 2),
    rate: LaneLimits.Rate? = nil,
    property: (String) -> Property = { .seen($0) }
  ) -> Bench {
    var settings = CommandSettings()
    settings.lanes["mesh"] = LaneLimits(rate: rate, window: window)
    return Bench(
      (0..<count).map { .of("d\($0)", lane: "mesh", [property("x\($0)")]) },
      settings: settings
    )
  }

  private static func setAll(_ bench: inout Bench, _ count: Int, _ value: Double) throws {
    for number in 0..<count { try bench.set("d\(number)/x\(number)", .number(value), now: true) }
  }

  private static func status(_ bench: borrowing Bench) throws -> LaneStatus {
    try #require(bench.machine.sendQueue.laneStatuses.first)
  }

  @Test func `a command leaves when an earlier one is confirmed`() throws {
    var bench = Self.bench(5)
    try Self.setAll(&bench, 5, 7)
    #expect(bench.send().count == 2)
    #expect(try Self.status(bench).waiting == 3)
    #expect(try Self.status(bench).inFlight == 2)
    try bench.report("d0/x0", 3)
    #expect(bench.send().count == 0)
    try bench.report("d0/x0", 7)
    #expect(bench.send().count == 1)
    try bench.report("d1/x1", 7)
    try bench.report("d2/x2", 7)
    #expect(bench.send().count == 2)
    #expect(try Self.status(bench).waiting == 0)
  }

  @Test func `a command that the device does not answer gives up its room`() throws {
    var bench = Self.bench(4)
    try Self.setAll(&bench, 4, 7)
    #expect(bench.send().count == 2)
    #expect(bench.wait() == 500)
    bench.pass(499)
    #expect(bench.send().count == 0)
    bench.pass(1)
    #expect(bench.send().count == 2)
    // A late confirmation frees no room twice.
    try bench.report("d0/x0", 7)
    #expect(try Self.status(bench).inFlight == 2)
    #expect(try Self.status(bench).roundTrip == .milliseconds(500))
  }

  @Test func `a refused or lost command gives up its room`() throws {
    var bench = Self.bench(6)
    try Self.setAll(&bench, 6, 7)
    bench.finish(bench.publishes(), .refused("no"))
    #expect(bench.publishes().count == 2)
    #expect(try Self.status(bench).inFlight == 2)
    try bench.set("d2/x2", 9, now: true)
    bench.pass(1)
    #expect(bench.publishes().count == 0)
  }

  @Test func `a device that cannot confirm counts for as long as others take`() throws {
    var bench = Self.bench(4, property: { .level($0) })
    try Self.setAll(&bench, 4, 7)
    #expect(bench.send().count == 2)
    #expect(bench.wait() == 250)
    bench.pass(249)
    #expect(bench.send().count == 0)
    bench.pass(1)
    #expect(bench.send().count == 2)
  }

  @Test func `an urgent value passes a full window at once`() throws {
    var bench = Self.bench(4) { name in
      .seen(name) { $0.urgent = [.number(0)] }
    }
    try Self.setAll(&bench, 4, 7)
    #expect(bench.send().count == 2)
    try bench.set("d3/x3", 0)
    #expect(bench.send() == ["0"])
    #expect(try Self.status(bench).inFlight == 3)
    try bench.report("d0/x0", 7)
    #expect(bench.send().count == 0)
    try bench.report("d1/x1", 7)
    #expect(bench.send().count == 1)
  }

  @Test func `rate and window hold both`() throws {
    var bench = Self.bench(4, rate: .init(perSecond: 10, burst: 1))
    try Self.setAll(&bench, 4, 7)
    #expect(bench.send().count == 1)
    #expect(bench.wait() == 100)
    bench.pass(100)
    #expect(bench.send().count == 1)
    bench.pass(100)
    #expect(bench.send().count == 0)
    try bench.report("d0/x0", 7)
    #expect(bench.send().count == 1)
    try bench.report("d1/x1", 7)
    #expect(bench.send().count == 0)
    #expect(bench.wait() == 100)
    bench.pass(100)
    #expect(bench.send().count == 1)
  }

  @Test func `a newer value of a key takes the place of the one in flight`() throws {
    var bench = Self.bench(3)
    try Self.setAll(&bench, 3, 7)
    #expect(bench.send().count == 2)
    for value in 8...20 {
      try bench.set("d0/x0", .number(Double(value)), now: true)
      bench.send()
      #expect(try Self.status(bench).inFlight ?? 99 <= 2)
    }
  }

  @Test func `one dead device does not narrow the window of the others`() throws {
    var bench = Self.bench(2, window: .auto)
    for round in 1...40 {
      try Self.setAll(&bench, 2, Double(round))
      bench.send()
      bench.pass(50)
      try bench.report("d1/x1", .integer(Int64(round)))
      bench.pass(6000)
    }
    #expect(try Self.status(bench).window == 4)
    #expect(try Self.status(bench).lost == 1)
  }

  @Test func `shutdown does not wait for the window`() throws {
    var bench = Self.bench(5)
    try Self.setAll(&bench, 5, 7)
    #expect(bench.send().count == 2)
    bench.machine.close(at: bench.now)
    #expect(bench.send().count == 3)
  }

  @Test func `a reload gives a lane another window`() throws {
    var bench = Self.bench(5)
    try Self.setAll(&bench, 5, 7)
    #expect(bench.send().count == 2)
    bench.machine.reloadAtOnce(
      bench.machine.registry,
      lanes: ["mesh": LaneLimits(window: .init(start: 4, min: 4, max: 4))],
      at: bench.now
    )
    #expect(bench.send().count == 2)
    bench.machine.reloadAtOnce(bench.machine.registry, lanes: [:], at: bench.now)
    #expect(bench.send().count == 1)
    try bench.report("d0/x0", 7)
    #expect(bench.machine.sendQueue.laneStatuses.isEmpty)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

/// Presses of a button: each is a command of its own.
struct ActionTests {
  private static let words = ["A", "B", "C", "D", "STOP"]

  private static func button(_ id: String = "button", ends: [String] = []) -> Property {
    .word(id, kind: .action(words), delay: 0) {
      $0.urgent = [.text("STOP")]
      $0.ends = ends
    }
  }

  private static func bench(
    lane limits: LaneLimits? = nil,
    _ properties: [Property] = [button()]
  ) -> Bench {
    var settings = CommandSettings()
    settings.lanes["mesh"] = limits
    return Bench([.of("d", lane: "mesh", properties)], settings: settings)
  }

  private static func press(_ bench: inout Bench, _ words: String...) throws {
    for word in words { try bench.set("button", .text(word)) }
  }

  @Test func `ten presses are ten commands, in order, each with its own events`() throws {
    var bench = Self.bench()
    let presses = (0..<10).map { ["A", "B", "B"][$0 % 3] }
    for (place, word) in presses.enumerated() {
      try bench.set("button", .text(word), origin: ChangeOrigin(id: .integer(Int64(place))))
    }
    var sent: [String] = []
    for _ in 0..<10 { sent += bench.send() }
    #expect(sent == presses)
    let events = bench.dequeueEvents()
    for place in 0..<10 {
      let own = events.filter { $0.origin?.id == .integer(Int64(place)) }
      #expect(own.map(\.phase) == [.accepted, .sending, .sent])
      #expect(own.allSatisfy { $0.value == .text(presses[place]) && $0.collapsed == 0 })
    }
    #expect(bench.isDrained == true)
  }

  @Test func `the next press leaves when the broker has the one before`() throws {
    var bench = Self.bench()
    try Self.press(&bench, "A", "B", "C")
    let first = bench.publishes()
    #expect(first.count == 1)
    #expect(bench.payloads() == [])
    bench.finish(first)
    #expect(bench.send() == ["B"])
    #expect(bench.send() == ["C"])
  }

  @Test func `presses keep to the rate of their lane`() throws {
    var bench = Self.bench(lane: LaneLimits(rate: 10, burst: 2))
    try Self.press(&bench, "A", "B", "C", "D")
    #expect(bench.send() == ["A"])
    #expect(bench.send() == ["B"])
    #expect(bench.send() == [])
    #expect(bench.wait() == 100)
    bench.pass(100)
    #expect(bench.send() == ["C"])
    bench.pass(99)
    #expect(bench.send() == [])
    bench.pass(1)
    #expect(bench.send() == ["D"])
  }

  @Test func `presses of one button keep to the window of their lane`() throws {
    var bench = Self.bench(lane: LaneLimits(window: .init(start: 2, min: 2, max: 2)))
    try Self.press(&bench, "A", "B", "C", "D")
    #expect(bench.send() == ["A"])
    bench.pass(100)
    #expect(bench.send() == ["B"])
    // Nothing confirms a press: each keeps its room for a while after the broker has it.
    #expect(bench.send() == [])
    #expect(bench.machine.sendQueue.laneStatuses.first?.inFlight == 2)
    #expect(bench.wait() == 150)
    bench.pass(150)
    #expect(bench.send() == ["C"])
    #expect(bench.send() == [])
    bench.pass(100)
    #expect(bench.send() == ["D"])
    bench.pass(1000)
    #expect(bench.machine.sendQueue.laneStatuses.first?.inFlight == 0)
  }

  @Test func `presses leave in turn with the other devices of the lane`() throws {
    var settings = CommandSettings()
    settings.lanes["mesh"] = LaneLimits(rate: 10, burst: 1)
    var bench = Bench(
      [.of("d", lane: "mesh", [Self.button()]), .of("e", lane: "mesh", [.level(delay: 0)])],
      settings: settings
    )
    try Self.press(&bench, "A", "B", "C")
    try bench.set("e/level", 7, now: true)
    var sent: [String] = []
    for _ in 0..<4 {
      sent += bench.send()
      bench.pass(100)
    }
    #expect(sent == ["A", "7", "B", "C"])
  }

  @Test func `more presses than may wait are rejected, with the limit`() throws {
    var bench = Self.bench(lane: LaneLimits(rate: 1, burst: 1))
    for _ in 0..<32 { try Self.press(&bench, "A") }
    #expect(throws: ValidationError.tooManyActions("d/button", limit: 32)) {
      try Self.press(&bench, "B")
    }
    #expect(
      ValidationError.tooManyActions("d/button", limit: 32).description
        == "32 commands of d/button wait to be sent already, which is the limit for an action"
    )
    #expect(bench.send() == ["A"])
    try Self.press(&bench, "B")
    #expect(throws: ValidationError.self) { try Self.press(&bench, "B") }
    // An urgent one always finds room.
    try Self.press(&bench, "STOP")
  }

  @Test func `a set of several properties is rejected whole when an action has no room`() throws {
    var bench = Self.bench([.level(), Self.button()])
    bench.connect(true)
    for _ in 0..<32 { try Self.press(&bench, "A") }
    let (level, button) = (try bench.key("level"), try bench.key("button"))
    #expect(throws: ValidationError.tooManyActions("d/button", limit: 32)) {
      try bench.machine.checkRoom(for: [(level, .number(3)), (button, .text("B"))])
    }
    try bench.machine.checkRoom(for: [(level, .number(3)), (button, .text("STOP"))])
  }

  @Test func `an urgent press takes the place of those that wait`() throws {
    var bench = Self.bench(
      lane: LaneLimits(rate: 1, burst: 1),
      [
        .level("position"), Self.button(ends: ["position"]),
      ]
    )
    try Self.press(&bench, "A", "B", "C")
    try bench.set("position", 40, now: true)
    #expect(bench.send() == ["A"])
    _ = bench.told()
    try Self.press(&bench, "STOP", "D")
    #expect(
      bench.told() == [
        "button accepted STOP", "button superseded B: urgent", "button superseded C: urgent",
        "position cancelled 40: urgent", "button accepted D",
      ]
    )
    bench.pass(1000)
    #expect(bench.send() == ["STOP"])
    bench.pass(1000)
    #expect(bench.send() == ["D"])
  }

  @Test func `a shutdown sends every press, in order, without waiting for the lane`() throws {
    var bench = Self.bench(lane: LaneLimits(rate: 1, burst: 1))
    try Self.press(&bench, "A", "B", "C", "D")
    bench.machine.close(at: bench.now)
    var sent: [String] = []
    while !bench.isDrained { sent += bench.send() }
    #expect(sent == ["A", "B", "C", "D"])
    #expect(bench.hasUnsent == false)
  }

  @Test func `a cancel ends every press that waits`() throws {
    var bench = Self.bench()
    try Self.press(&bench, "A", "B", "C")
    let first = bench.publishes()
    _ = bench.told()
    #expect(bench.machine.cancel(try bench.key("button"), at: bench.now) == true)
    #expect(bench.told() == ["button cancelled B", "button cancelled C"])
    bench.finish(first)
    #expect(bench.payloads() == [])
    #expect(bench.machine.cancel(try bench.key("button"), at: bench.now) == false)
  }

  @Test(arguments: [true, false])
  func `presses that wait fail when their device or the broker goes away`(isDevice: Bool) throws {
    var bench = Self.bench(lane: LaneLimits(rate: 1, burst: 1))
    try Self.press(&bench, "A", "B", "C")
    bench.send()
    _ = bench.told()
    if isDevice { bench.online(false) } else { bench.connect(false) }
    let reason = isDevice ? "the device is offline" : "the broker is not connected"
    #expect(bench.told() == ["button failed B: \(reason)", "button failed C: \(reason)"])
    if isDevice { bench.online(true) } else { bench.connect(true) }
    bench.pass(5000)
    #expect(bench.payloads() == [])
    #expect(bench.wait() == nil)
  }

  @Test func `a press that is lost does not hold up the next`() throws {
    var bench = Self.bench()
    try Self.press(&bench, "A", "B")
    bench.finish(bench.publishes(), .lost)
    #expect(bench.send() == ["B"])
    bench.finish(bench.publishes(), .refused("no"))
    #expect(bench.isDrained == true)
  }

  @Test func `what waits is the next press, and how many there are`() throws {
    var bench = Self.bench(lane: LaneLimits(rate: 1, burst: 1))
    try Self.press(&bench, "A", "B", "C", "D")
    bench.send()
    let found = PendingStatus(of: try bench.key("button"), in: bench.machine)
    let pending = try #require(found)
    #expect(pending.value == .text("B"))
    #expect(pending.count == 3)
    #expect(pending.collapsed == 0)
    #expect(pending.waits == .lane)
    #expect(bench.machine.sendQueue.laneStatuses.first?.waiting == 3)
    #expect(QueueSummary(of: bench.machine).lanes.first?.waiting == 3)
    #expect(bench.machine.pendingCount == 1)
    bench.machine.log.statuses.changedKeys.removeAll()
    bench.pass(1000)
    bench.send()
    #expect(bench.machine.log.statuses.changedKeys.isEmpty == false)
  }

  // MARK: - Reload

  private static func reloaded(
    _ bench: inout Bench,
    _ adjust: (inout Property) -> Void
  ) throws {
    var property = button()
    adjust(&property)
    var device = Device.of("d", lane: "mesh", [property])
    device.name = "D"
    bench.machine.beginReload(Registry([device], continuing: bench.machine.registry))
    while bench.machine.continueReload(keys: 10, at: bench.now) != .finished {}
  }

  @Test func `a reload ends only the presses whose word is gone`() throws {
    var bench = Self.bench(lane: LaneLimits(rate: 1, burst: 1))
    try Self.press(&bench, "A", "B", "C", "B", "D")
    bench.send()
    _ = bench.told()
    try Self.reloaded(&bench) { $0.kind = .action(["A", "C", "D", "STOP"]) }
    let reason = "its device file was changed"
    #expect(bench.told() == ["button cancelled B: \(reason)", "button cancelled B: \(reason)"])
    bench.pass(1000)
    #expect(bench.send() == ["C"])
    bench.pass(1000)
    #expect(bench.send() == ["D"])
  }

  @Test func `a reload that makes a button a value ends the presses that wait`() throws {
    var bench = Self.bench(lane: LaneLimits(rate: 1, burst: 1))
    try Self.press(&bench, "A", "B", "C")
    bench.send()
    _ = bench.told()
    try Self.reloaded(&bench) { $0.kind = .choice(Self.words) }
    #expect(bench.told().allSatisfy { $0.hasPrefix("button cancelled") })
    #expect(bench.hasUnsent == false)
  }
}

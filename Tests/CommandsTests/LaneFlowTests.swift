// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import LastOutTesting
import Testing
import Values

@testable import Commands

/// The order of a lane: what one source asks for at one time is a flow, and flows take turns.
struct LaneFlowTests {
  /// A lane of 10/s with lamps of one level each, and everything that has left it.
  private struct Lane: ~Copyable {
    var bench: Bench
    /// The devices that commands left for, in order, such as `s12`.
    private(set) var left: [String] = []
    /// The command of each device that waits in the lane, with how many had left when it came.
    private var ready: [String: (value: Value, at: Int)] = [:]
    /// What left while the last command of each device waited in the lane.
    private(set) var ahead: [String: [String]] = [:]

    /// Lamps `s0` and so on for scenes, `f0` and so on for fingers.
    init(scene: Int, fingers: Int = 0, rate: Double? = 10, urgent: [Value] = []) {
      let names = (0..<scene).map { "s\($0)" } + (0..<fingers).map { "f\($0)" }
      var settings = CommandSettings()
      settings.lanes["mesh"] = rate.map { LaneLimits(rate: $0, burst: 1) }
      bench = Bench(
        names.map { .of($0, lane: "mesh", [.level("x") { $0.urgent = urgent }]) },
        settings: settings
      )
      bench.machine.log.isWatched = false
    }

    mutating func set(
      _ device: String,
      _ value: Double,
      from source: String? = nil,
      now: Bool = false
    ) throws {
      let origin = source.map { ChangeOrigin(source: $0) }
      try bench.set("\(device)/x", .number(value), origin: origin, now: now)
      look()
    }

    /// Sets the lamps of the scene, so many in each of some milliseconds.
    mutating func scene(_ count: Int, inEach: Int, from source: String?) throws {
      for number in 0..<count {
        try set("s\(number)", 50, from: source)
        if (number + 1) % inEach == 0 { run(1) }
      }
    }

    /// Passes the time millisecond by millisecond, and sends what may leave.
    mutating func run(_ milliseconds: Int) {
      for _ in 0..<milliseconds {
        bench.pass(1)
        look()
        send()
        bench.machine.log.events.removeAll(keepingCapacity: true)
      }
    }

    /// Sends what may leave, one by one, at most so many.
    mutating func send(atMost limit: Int = .max) {
      for _ in 0..<limit {
        guard let publish = bench.machine.nextPublish(at: bench.now) else { return }
        let name = name(publish.keys[0])
        ahead[name] = ready.removeValue(forKey: name).map { Array(left[$0.at...]) }
        left.append(name)
        bench.finish([publish])
      }
    }

    private func name(_ key: KeyIndex) -> String {
      String(bench.machine.registry[key].key.split(separator: "/")[0])
    }

    private mutating func look() {
      for key in bench.machine.facts.keys where bench.machine.sendQueue.isInLane(key) {
        guard let value = bench.machine.sendQueue[key]?.value else { continue }
        if ready[name(key)]?.value != value { ready[name(key)] = (value, left.count) }
      }
    }

    /// Runs until a command of `device` has left; returns what left since it was ready.
    mutating func wait(for device: String) throws -> [String] {
      for _ in 0..<60_000 {
        if let ahead = ahead.removeValue(forKey: device) { return ahead }
        run(1)
      }
      return try #require(ahead[device])
    }
  }

  @Test(arguments: [30, 60, 200], [(1000, "panel"), (5, nil)] as [(Int, String?)])
  func `a finger waits behind at most one command of a scene`(
    lamps: Int,
    way: (inEach: Int, source: String?)
  ) throws {
    // As one request, and as messages of one source within some milliseconds.
    for (finger, delay) in [("f0", 0), ("f0", 1), ("f0", 700), ("s\(lamps - 1)", 700)] {
      var lane = Lane(scene: lamps, fingers: 1)
      try lane.scene(lamps, inEach: way.inEach, from: way.source)
      lane.run(delay)
      try lane.set(finger, 70, from: "finger")
      #expect(try lane.wait(for: finger).count <= 1, "after \(delay) ms")
      // Nothing of the scene is lost by it.
      lane.run(lamps * 100)
      #expect(Set(lane.left).count == (finger == "f0" ? lamps + 1 : lamps))
      #expect(lane.left.count == (finger == "f0" ? lamps + 1 : lamps))
    }
  }

  @Test func `a slider that moves on waits behind one command of a scene each time`() throws {
    var lane = Lane(scene: 60, fingers: 1)
    try lane.scene(60, inEach: 60, from: "panel")
    lane.run(400)
    for value in 1...10 {
      try lane.set("f0", Double(value), from: "panel", now: true)
      #expect(try lane.wait(for: "f0").count <= 1)
    }
  }

  @Test func `two fingers and a scene: nobody starves`() throws {
    var lane = Lane(scene: 60, fingers: 2)
    try lane.scene(60, inEach: 60, from: "panel")
    lane.run(400)
    let before = lane.left.count
    for value in 0..<90 {
      try lane.set("f0", Double(value % 100), from: "one", now: true)
      try lane.set("f1", Double(value % 99), from: "other", now: true)
      lane.run(60)
    }
    let left = lane.left[before...]
    let ofScene = left.count { $0.hasPrefix("s") }
    // The scene gets every second place, and the fingers share the rest.
    #expect(ofScene >= left.count / 2 - 1)
    #expect(left.count { $0 == "f0" } >= left.count / 4 - 1)
    #expect(left.count { $0 == "f1" } >= left.count / 4 - 1)
  }

  @Test func `urgent values leave first of all`() throws {
    var lane = Lane(scene: 60, fingers: 2, urgent: [0])
    try lane.scene(60, inEach: 60, from: "panel")
    lane.run(400)
    try lane.set("f0", 7, from: "one", now: true)
    try lane.set("f1", 0, from: "other")
    #expect(try lane.wait(for: "f1") == [])
    #expect(try lane.wait(for: "f0").filter { $0.hasPrefix("s") }.count <= 1)
  }

  @Test func `ten sources in loops leave every second place to what waits`() throws {
    var lane = Lane(scene: 20, fingers: 10)
    try lane.scene(20, inEach: 20, from: "panel")
    lane.run(400)
    let before = lane.left.count
    for round in 0..<60 {
      for finger in 0..<10 {
        try lane.set("f\(finger)", Double(round), from: "source \(finger)", now: true)
      }
      lane.run(60)
    }
    let left = Array(lane.left[before...])
    let rest = 20 - before
    let end = (left.lastIndex { $0.hasPrefix("s") } ?? 0) + 1
    #expect(left[..<end].count { $0.hasPrefix("s") } == rest)
    #expect(end <= 2 * rest + 1)
    // Nor does one of them starve another.
    for finger in 0..<10 { #expect(left.contains("f\(finger)")) }
  }

  @Test func `a source that repeats a scene starves none of its lamps`() throws {
    var lane = Lane(scene: 10)
    for round in 0..<300 {
      for number in 0..<10 { try lane.set("s\(number)", Double(round % 100), now: true) }
      lane.run(60)
    }
    for number in 0..<10 {
      #expect(lane.left.count { $0 == "s\(number)" } >= lane.left.count / 30, "s\(number)")
    }
  }

  @Test func `without a limit, what comes later does not wait for a crowd either`() throws {
    var lane = Lane(scene: 500, fingers: 1, rate: nil)
    for number in 0..<500 { try lane.set("s\(number)", 50, from: "panel", now: true) }
    lane.send(atMost: 100)
    try lane.set("f0", 70, from: "finger", now: true)
    lane.send(atMost: 2)
    #expect(lane.left.suffix(2).contains("f0"))
  }

  @Test func `commands of one device keep their order when a finger moves it forward`() throws {
    var settings = CommandSettings()
    settings.lanes["mesh"] = LaneLimits(rate: 10, burst: 1)
    var bench = Bench(
      (0..<9).map { .of("s\($0)", lane: "mesh", [.level("x"), .level("y"), .level("z")]) },
      settings: settings
    )
    let scene = ChangeOrigin(source: "panel")
    for number in 0..<9 {
      for (id, value) in [("x", 1), ("y", 2), ("z", 3)] as [(String, Value)] {
        try bench.set("s\(number)/\(id)", value, origin: scene, now: true)
      }
    }
    bench.pass(100)
    try bench.set("s8/z", 4, origin: ChangeOrigin(source: "finger"), now: true)
    var order: [String] = []
    for _ in 0..<27 {
      bench.pass(100)
      order += bench.publishes().flatMap { publish in
        bench.finish([publish])
        return publish.keys.map { bench.machine.registry[$0].key }
      }
    }
    let places = try ["s8/x", "s8/y", "s8/z"].map { try #require(order.firstIndex(of: $0)) }
    // Behind the scene's first command, which had its token.
    #expect(places == [1, 2, 3])
    #expect(order.count == 27)
  }

  @Test func `a value in its quiet period rides with a waiting one, in the flow of that`() throws {
    var settings = CommandSettings()
    settings.lanes["mesh"] = LaneLimits(rate: 10, burst: 1)
    let devices = (0..<4).map { number in
      var device = Device.of(
        "s\(number)",
        lane: "mesh",
        ["x", "y"].map { id in
          .level(id) {
            $0.command.topic = "s\(number)/set"
            $0.command.payload = PayloadTemplate(.object([id: "$value"]))
          }
        }
      )
      device.merge = true
      return device
    }
    var bench = Bench(devices, settings: settings)
    let (scene, finger) = (ChangeOrigin(source: "panel"), ChangeOrigin(source: "finger"))
    for number in 0..<4 { try bench.set("s\(number)/x", 1, origin: scene, now: true) }
    bench.pass(60)
    #expect(bench.send() == [#"{"x":1}"#])
    try bench.set("s2/y", 2, origin: finger)
    let keys = try ["s1/x", "s2/x", "s2/y", "s3/x"].map { try bench.key($0) }
    let promised = PendingStatus.all(of: keys, in: bench.machine, at: bench.now)
    #expect(promised.map(\.waits) == [.lane, .lane, .quiet, .lane])
    bench.pass(100)
    #expect(bench.send() == [#"{"x":1}"#])
    bench.pass(100)
    #expect(bench.send() == [#"{"x":1,"y":2}"#])
    #expect(bench.now == promised[1].due)
    #expect(PendingStatus(of: try bench.key("s2/y"), in: bench.machine) == nil)
    bench.pass(100)
    #expect(bench.send() == [#"{"x":1}"#])
    #expect(bench.now == promised[3].due)
    #expect(bench.wait() == nil)
  }

  @Test(arguments: 0..<20) func `pending says when each leaves, whatever the flows`(
    seed: UInt64
  ) throws {
    var generator = SeededGenerator(seed: seed)
    var lane = Lane(scene: 12)
    for round in 0..<40 {
      for _ in 0..<generator.below(6) {
        try lane.set(
          "s\(generator.below(12))",
          Double(round),
          from: "source \(generator.below(3))",
          now: true
        )
      }
      lane.run(generator.below(80))
    }
    let times = PendingStatus.sendTimes(in: lane.bench.machine, after: lane.bench.now)
    let expected = times.sorted { $0.value < $1.value }.map { entry in
      lane.bench.machine.registry[entry.key].key.split(separator: "/")[0]
    }
    let before = lane.left.count
    lane.run(2000)
    #expect(lane.left[before...].map { $0[...] } == expected)
  }

  // MARK: - Numbers

  @Test func `a flow is what one source asks for within 50 ms`() {
    var numbers = FlowNumbers()
    func number(_ source: String, _ milliseconds: Int) -> UInt32 {
      numbers.number(of: source, at: .at(milliseconds)) { _ in true }
    }
    let first = number("a", 0)
    #expect(number("a", 0) == first)
    #expect(number("b", 0) != first)
    #expect(number("a", 50) == first)
    // From its first change on: it does not go on for ever.
    #expect(number("a", 51) != first)
    // Many sources at one time: the latest are remembered.
    for other in 0..<100 { _ = number("other \(other)", 60) }
    #expect(number("other 99", 60) == number("other 99", 60))
    #expect(number("a", 60) != first)
  }

  @Test func `a new flow does not share the place of one that waits`() {
    var flows = LaneFlows(devices: 1)
    var numbers = FlowNumbers()
    let waiting = numbers.number(of: "a", at: .at(0)) { flows.isEmpty($0) }
    flows.add(0, to: waiting)
    for moment in 1...3000 {
      let number = numbers.number(of: "a", at: .at(100 * moment)) { flows.isEmpty($0) }
      #expect(number % LaneFlows.count != waiting % LaneFlows.count)
    }
  }

  @Test(arguments: 0..<30) func `the order is that of a plain model`(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let count = 8
    var flows = LaneFlows(devices: count)
    var model = FlowModel()
    var newest: UInt32 = .max - 40
    for _ in 0..<3000 {
      let device = generator.below(count)
      switch generator.below(8) {
      case 0, 1:
        newest &+= UInt32(generator.below(3))
        flows.add(device, to: newest)
        model.add(device, to: newest)
      case 2:
        // A repeated command is of an older flow.
        let older = newest &- UInt32(generator.below(20))
        flows.add(device, to: older)
        model.add(device, to: older)
      case 3:
        flows.remove(device)
        model.remove(device)
      default:
        guard let next = model.next else { continue }
        #expect(flows.next == next)
        let flow = newest &- UInt32(generator.below(20))
        flows.hadTurn(next, with: flow)
        model.hadTurn(next, with: flow)
        if generator.below(4) > 0 {
          flows.remove(next)
          model.remove(next)
        }
      }
    }
  }
}

/// The order of ``LaneFlows`` in plain lists.
private struct FlowModel {
  struct Flow {
    let number: UInt32
    var isOld = false
    /// The devices in their order, with how many joined the flow before.
    var devices: [(device: Int, seat: Int)] = []
    var joined = 0
  }

  /// New flows, then old ones, each in their order.
  private var flows: [Flow] = []
  private var owesTurn = false

  private var choice: Int? {
    let old = flows.firstIndex(where: \.isOld)
    return flows.first.map { $0.isOld || !owesTurn } ?? false ? 0 : old ?? flows.indices.first
  }

  var next: Int? { choice.map { flows[$0].devices[0].device } }

  private func place(of device: Int) -> Int? {
    flows.firstIndex { $0.devices.contains { $0.device == device } }
  }

  private func isNewer(_ one: UInt32, _ other: UInt32) -> Bool {
    Int32(bitPattern: one &- other) > 0
  }

  mutating func add(_ device: Int, to number: UInt32) {
    if let present = place(of: device),
      let seat = flows[present].devices.first(where: { $0.device == device })?.seat
    {
      guard isNewer(number, flows[present].number) else { return }
      let ahead = seat - flows[present].devices[0].seat + (flows[present].isOld ? 1 : 0)
      let other = flows.first { $0.number == number }
      let aheadThere = other.map { $0.joined - $0.devices[0].seat + ($0.isOld ? 1 : 0) } ?? 0
      guard aheadThere < ahead else { return }
      remove(device)
    }
    if !flows.contains(where: { $0.number == number }) {
      flows.insert(Flow(number: number), at: flows.firstIndex(where: \.isOld) ?? flows.count)
    }
    guard let place = flows.firstIndex(where: { $0.number == number }) else { return }
    flows[place].devices.append((device, flows[place].joined))
    flows[place].joined += 1
  }

  mutating func remove(_ device: Int) {
    guard let place = place(of: device) else { return }
    flows[place].devices.removeAll { $0.device == device }
    if flows[place].devices.isEmpty { flows.remove(at: place) }
  }

  mutating func hadTurn(_ device: Int, with number: UInt32) {
    guard let place = place(of: device) else { return }
    guard !isNewer(flows[place].number, number) else {
      owesTurn = false
      return
    }
    owesTurn = !flows[place].isOld && flows.contains(where: \.isOld)
    var flow = flows.remove(at: place)
    flow.isOld = true
    flow.devices.removeAll { $0.device == device }
    flow.devices.append((device, flow.joined))
    flow.joined += 1
    flows.append(flow)
  }
}

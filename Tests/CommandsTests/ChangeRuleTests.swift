// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

@Suite struct ChangeRuleTests {
  @Test func `a step counts from the pending value first`() throws {
    var bench = Bench(.seen())
    try bench.report("level", 10)
    try bench.set("level", 20, now: true)
    bench.send()
    #expect(try bench.target("level") == 20)
    try bench.step("level", 5)
    #expect(try bench.target("level") == 25)
    try bench.step("level", 5)
    #expect(try bench.target("level") == 30)
  }

  @Test func `then from the value behind the queue, then from the unconfirmed target`() throws {
    var bench = Bench(.seen())
    try bench.report("level", 10)
    try bench.set("level", 20, now: true)
    let leaving = bench.publishes()
    try bench.set("level", 50, now: true)
    #expect(bench.machine.base(of: try bench.key("level")) == 50)
    bench.machine.cancel(try bench.key("level"), at: bench.now)
    #expect(bench.machine.base(of: try bench.key("level")) == 20)
    bench.finish(leaving)
    #expect(bench.machine.base(of: try bench.key("level")) == 20)
    bench.pass(5000)
    #expect(bench.machine.base(of: try bench.key("level")) == 10)
  }

  @Test func `without a state topic a step counts from the last sent value`() throws {
    var bench = Bench(.level())
    #expect(throws: ValidationError.noBase) { try bench.step("level", 5) }
    try bench.set("level", 40, now: true)
    bench.send()
    try bench.step("level", -5)
    #expect(try bench.target("level") == 35)
  }

  @Test func `the sum is clamped to the range`() throws {
    var bench = Bench(.level())
    try bench.set("level", 95)
    try bench.step("level", 30)
    #expect(try bench.target("level") == 100)
    try bench.step("level", -300)
    #expect(try bench.target("level") == 0)
  }

  @Test func `toggle flips the pending value, and what leaves is absolute`() throws {
    var bench = Bench(
      .word("power", kind: .boolean) { $0.state = .init(topic: "p", value: .whole) }
    )
    try bench.report("power", "ON")
    try bench.toggle("power")
    #expect(try bench.target("power") == .boolean(false))
    bench.pass(20)
    #expect(bench.send() == ["false"])
    try bench.toggle("power")
    try bench.toggle("power")
    #expect(try bench.target("power") == .boolean(false))
  }

  @Test func `step and toggle are refused where the kind has none, known value or not`() throws {
    var bench = Bench(.level(), .word("power", kind: .boolean), .word("text"))
    #expect(throws: ValidationError.self) { try bench.toggle("level") }
    #expect(throws: ValidationError.self) { try bench.step("power", 1) }
    #expect(throws: ValidationError.self) { try bench.step("level", .nan) }
    try bench.set("text", .text("a"))
    #expect(throws: ValidationError.self) { try bench.step("text", 1) }
    #expect(bench.machine.log.statistics.rejected == 4)
    #expect(bench.machine.pendingCount == 1)
  }

  // MARK: - Steps that wait for the state

  private static func asked(_ id: String = "level") -> Property {
    .seen(id) {
      let request = StateRequest(topic: "\(id)/get", payload: [])
      $0.states = [
        StateSource(topic: "other", value: .whole),
        StateSource(topic: "\(id)/state", value: .whole, get: request),
      ]
    }
  }

  @Test func `a step waits up to 2 s for the state that was asked for`() throws {
    var bench = Bench(Self.asked())
    let origin = ChangeOrigin(replyTo: 7)
    try bench.step("level", 5, origin: origin)
    try bench.step("level", 1)
    #expect(bench.wait() == 2000)
    #expect(bench.told() == [])
    try bench.report("level", 10)
    #expect(try bench.target("level") == 16)
    bench.pass(300)
    #expect(bench.payloads() == ["16"])
    let events = bench.dequeueEvents().filter { $0.origin?.replyTo == 7 }
    #expect(events.map(\.phase) == [.accepted, .superseded])
  }

  @Test func `steps that waited can be had as the values they became, refused ones not`() throws {
    var bench = Bench(Self.asked())
    bench.machine.recordsAppliedSteps = true
    try bench.step("level", 5, origin: ChangeOrigin(source: "first"))
    try bench.step("level", 1e9)
    try bench.step("level", 1, origin: ChangeOrigin(source: "last"))
    #expect(bench.machine.appliedSteps.isEmpty)
    try bench.report("level", 10)
    let steps = bench.machine.appliedSteps
    #expect(steps.first?.value == 15)
    #expect(steps.first?.origin?.source == "first")
    #expect(steps.last?.value == bench.machine.base(of: try bench.key("level")))
    #expect(steps.last?.origin?.source == "last")
    #expect(steps.allSatisfy { $0.at == bench.now })

    try bench.step("level", 1)
    #expect(bench.machine.appliedSteps.count == steps.count)
  }

  @Test func `each waiting step is refused for its own caller when no state comes`() throws {
    var bench = Bench(Self.asked())
    for caller in [1, 2] as [UInt64] {
      try bench.step("level", 5, origin: ChangeOrigin(replyTo: caller))
    }
    bench.pass(2000)
    let events = bench.dequeueEvents()
    #expect(events.map(\.phase) == [.rejected, .rejected])
    #expect(events.map { $0.origin?.replyTo } == [1, 2])
    #expect(events.map(\.isFinal) == [true, true])
    #expect(bench.wait() == nil)
    #expect(bench.machine.log.statistics.rejected == 2)
  }

  @Test func `a value takes the place of steps that wait, and cancel ends them`() throws {
    var bench = Bench(Self.asked("a"), Self.asked("b"))
    try bench.step("a", 5)
    try bench.step("b", 5)
    try bench.set("a", 40)
    #expect(bench.told() == ["a accepted 40", "a superseded: newer value"])
    #expect(bench.machine.cancel(try bench.key("b"), at: bench.now))
    #expect(bench.told() == ["b cancelled"])
    #expect(bench.wait() == 300)
  }

  @Test func `no step waits without a broker, nor more than 1,024 for one key`() throws {
    var bench = Bench(Self.asked(), isConnected: false)
    #expect(throws: ValidationError.noBase) { try bench.step("level", 5) }
    bench.connect(true)
    for _ in 0..<1024 { try bench.step("level", 1) }
    #expect(throws: ValidationError.self) { try bench.step("level", 1) }
  }

  @Test func `a waiting step keeps what came with it`() throws {
    var bench = Bench(Self.asked())
    try bench.machine.change(
      .step(5),
      of: bench.key("level"),
      at: bench.now,
      ChangeOptions(ttl: .seconds(9), skipsQuiet: true)
    )
    try bench.report("level", 10)
    let leaving = bench.publishes()
    #expect(leaving.map(\.expiry) == [.seconds(9)])
  }

  // MARK: - Urgent values

  private static var valve: [Property] {
    [
      .seen("level", retries: 3),
      .word("mode", kind: .choice(["off", "heat"]), delay: 500) {
        $0.urgent = [.text("off")]
        $0.ends = ["level"]
        $0.state = StateSource(topic: "mode", value: .whole)
        $0.confirm = Confirmation(retries: 1)
      },
    ]
  }

  @Test func `an urgent value leaves at once and ends its own key and those it names`() throws {
    var bench = Bench([.of("d", Self.valve)])
    try bench.set("level", 20)
    try bench.set("mode", .text("heat"))
    _ = bench.told()
    try bench.set("mode", .text("off"))
    #expect(bench.payloads() == ["off"])
    #expect(
      bench.told() == [
        "mode accepted off", "mode cancelled heat: urgent", "level cancelled 20: urgent",
        "mode sending off",
      ]
    )
    bench.pass(5000)
    #expect(bench.payloads() == [])
  }

  @Test func `it ends retries, what is in flight, and what is held for an absent device`() throws {
    var bench = Bench([.of("d", Self.valve)])
    try bench.set("level", 20, now: true)
    let leaving = bench.publishes()
    try bench.set("mode", .text("off"))
    bench.finish(leaving, .lost)
    #expect(bench.send() == ["off"])
    try bench.report("mode", "off")
    bench.pass(60_000)
    #expect(bench.payloads() == [])

    bench.online(false)
    try bench.set("level", 30, now: true)
    try bench.set("mode", .text("off"))
    bench.online(true)
    #expect(bench.send() == ["off"])
  }

  @Test func `an urgent value is never unchanged`() throws {
    var bench = Bench([.of("d", Self.valve)])
    try bench.report("mode", "off")
    try bench.set("mode", .text("off"))
    #expect(bench.payloads() == ["off"])
  }

  @Test func `an urgent value waits for its key's acknowledgement, then leaves first`() throws {
    var settings = CommandSettings()
    settings.lanes["bus"] = LaneLimits(rate: 10, burst: 1)
    var bench = Bench(
      [.of("d", lane: "bus", Self.valve), .of("e", lane: "bus", [.level()])],
      settings: settings
    )
    try bench.set("d/mode", .text("heat"), now: true)
    let leaving = bench.publishes()
    try bench.set("e/level", 1, now: true)
    try bench.set("d/mode", .text("off"))
    #expect(bench.payloads() == [])
    bench.finish(leaving)
    #expect(bench.payloads() == [])
    bench.pass(100)
    #expect(bench.payloads() == ["off"])
    bench.pass(100)
    #expect(bench.payloads() == ["1"])
  }

  @Test func `an urgent value set at the device ends what it overrides`() throws {
    var bench = Bench([.of("d", Self.valve)])
    try bench.report("mode", "heat")
    try bench.report("level", 10)
    try bench.set("level", 40, now: true)
    bench.send()
    try bench.report("mode", "off")
    #expect(bench.told().last == "level superseded 40: changed at the device")
    #expect(try bench.target("level") == 10)
  }

  @Test func `our own urgent value's report does not end what was asked for after it`() throws {
    var bench = Bench([.of("d", Self.valve)])
    try bench.report("mode", "heat")
    try bench.report("level", 10)
    try bench.set("mode", .text("off"))
    bench.send()
    try bench.set("level", 40, now: true)
    bench.send()
    try bench.report("mode", "off")
    #expect(bench.told().last == "mode confirmed off")
    #expect(try bench.target("level") == 40)
  }

  // MARK: - Actions

  private static var blind: [Property] {
    [
      .level("position"),
      .word("button", kind: .action(["STOP", "OPEN"]), delay: 0) {
        $0.urgent = [.text("STOP")]
        $0.ends = ["position"]
      },
    ]
  }

  @Test func `an action has no target, is never unchanged, and sent is its end`() throws {
    var bench = Bench([.of("d", Self.blind)])
    for _ in 1...2 {
      try bench.set("button", .text("OPEN"))
      bench.pass(0)
      #expect(bench.send() == ["OPEN"])
    }
    #expect(try bench.target("button") == nil)
    let events = bench.dequeueEvents()
    #expect(events.last?.phase == .sent)
    #expect(events.last?.isFinal == true)
  }

  @Test(arguments: ["OPEN", "STOP"])
  func `an action is not held for an absent party`(word: String) throws {
    var bench = Bench([.of("d", Self.blind)])
    bench.online(false)
    try bench.set("button", .text(word), now: true)
    #expect(bench.told().last == "button failed \(word): the device is offline")
    bench.online(true)
    #expect(bench.payloads() == [])
    bench.connect(false)
    try bench.set("button", .text(word), now: true)
    #expect(bench.told().last == "button failed \(word): the broker is not connected")
    #expect(bench.wait() == nil)
  }

  @Test func `an action that was lost is not repeated`() throws {
    var bench = Bench([.of("d", Self.blind)])
    try bench.set("button", .text("STOP"))
    bench.finish(bench.publishes(), .lost)
    #expect(bench.told().last == "button failed STOP: the connection to the broker was lost")
    #expect(bench.payloads() == [])
  }

  // MARK: - Merge, excludes, options

  private static func light(_ adjust: (inout Device) -> Void = { _ in }) -> Device {
    func member(_ name: String, _ topic: String = "light/set") -> (inout Property) -> Void {
      {
        $0.command = CommandEndpoint(
          topic: topic,
          payload: PayloadTemplate(.object([.init(name, "$value")]))
        )
      }
    }
    var device = Device.of(
      "d",
      [
        .level("brightness", adjust: member("brightness")),
        .level("warmth", delay: 900, adjust: member("warmth")),
        .seen("hue") {
          member("hue")(&$0)
          $0.excludes = ["warmth"]
        },
        .level("speed", adjust: member("speed", "fan/set")),
        .level("bare"),
      ]
    )
    device.merge = true
    device.options = ["transition"]
    adjust(&device)
    return device
  }

  @Test func `pending properties with the same topic leave in one message, each consumed`() throws {
    var bench = Bench([Self.light()])
    try bench.set("warmth", 300)
    try bench.set("brightness", 128)
    try bench.set("speed", 3)
    bench.pass(300)
    let leaving = bench.publishes()
    #expect(leaving.map(\.topic) == ["light/set", "fan/set"])
    #expect(
      String(decoding: leaving[0].payload, as: UTF8.self) == #"{"brightness":128,"warmth":300}"#
    )
    bench.finish(leaving)
    bench.pass(2000)
    #expect(bench.payloads() == [])
    #expect(bench.told().filter { $0.contains("sent") }.count == 3)
  }

  @Test func `without merge each leaves alone`() throws {
    var bench = Bench([Self.light { $0.merge = false }])
    try bench.set("warmth", 3, now: true)
    try bench.set("brightness", 4, now: true)
    #expect(bench.payloads() == [#"{"warmth":3}"#, #"{"brightness":4}"#])
  }

  @Test func `a key whose command is in flight does not join a message`() throws {
    var bench = Bench([Self.light()])
    try bench.set("warmth", 3, now: true)
    let first = bench.publishes()
    try bench.set("warmth", 5, now: true)
    try bench.set("brightness", 4, now: true)
    #expect(bench.payloads() == [#"{"brightness":4}"#])
    bench.finish(first)
    #expect(bench.payloads() == [#"{"warmth":5}"#])
  }

  @Test func `of properties that exclude each other the newer wins, in both directions`() throws {
    var bench = Bench([Self.light()])
    try bench.set("warmth", 3)
    try bench.set("hue", 4)
    #expect(bench.told().last == "warmth superseded 3: replaced by hue")
    try bench.set("warmth", 5)
    #expect(bench.told().last == "hue superseded 4: replaced by warmth")
    bench.pass(900)
    #expect(bench.payloads() == [#"{"warmth":5}"#])
  }

  @Test func `an excluded command in flight is not repeated after the newer one`() throws {
    var bench = Bench([Self.light()])
    try bench.set("hue", 4, now: true)
    let leaving = bench.publishes()
    try bench.set("warmth", 5, now: true)
    bench.finish(leaving, .lost)
    #expect(bench.payloads() == [#"{"warmth":5}"#])
    bench.pass(60_000)
    #expect(bench.payloads() == [])
  }

  @Test func `options ride with the command and extend the confirmation`() throws {
    var bench = Bench([Self.light()])
    try bench.set("hue", 4, options: [.init("transition", 3)], now: true)
    #expect(bench.send() == [#"{"hue":4,"transition":3}"#])
    #expect(bench.wait() == 8000)
  }

  @Test func `options do not ride where the payload is no object`() throws {
    var bench = Bench([Self.light()])
    try bench.set("bare", 4, options: [.init("transition", 3)], now: true)
    #expect(bench.payloads() == ["4"])
  }
}

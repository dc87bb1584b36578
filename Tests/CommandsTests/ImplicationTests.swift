// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

/// A lamp whose brightness turns it on: which of power and brightness wins, and what is sent.
@Suite struct ImplicationTests {
  private static func lamp(merges: Bool = true, retries: Int = 0) -> Device {
    func object(_ member: String) -> CommandEndpoint {
      CommandEndpoint(
        topic: merges ? "d/set" : "d/\(member)",
        payload: PayloadTemplate(.object([.init(member, "$value")]))
      )
    }
    var lamp = Device.of(
      "d",
      [
        .word("power", kind: .boolean, delay: 100) {
          $0.command = object("power")
          $0.state = StateSource(topic: "d", value: .whole)
          $0.confirm = Confirmation()
        },
        .seen("brightness", retries: retries) {
          $0.command = object("brightness")
          $0.implies = [Implication(property: "power", value: .boolean(true))]
        },
      ]
    )
    lamp.merge = merges
    return lamp
  }

  private static func bench(
    _ isOn: Bool?,
    merges: Bool = true,
    retries: Int = 0
  ) throws -> Bench {
    var bench = Bench([lamp(merges: merges, retries: retries)])
    if let isOn { try bench.report("power", .boolean(isOn)) }
    try bench.report("brightness", 40)
    _ = bench.told()
    return bench
  }

  /// A lamp with a `warmth` too, which turns it on.
  private static var warmLamp: Device {
    var lamp = lamp()
    lamp.properties.append(lamp.properties[1])
    lamp.properties[2].id = "warmth"
    lamp.properties[2].command.payload = PayloadTemplate(.object([.init("warmth", "$value")]))
    return lamp
  }

  @Test func `off within the quiet period of a brightness ends that`() throws {
    var bench = try Self.bench(false)
    try bench.set("brightness", 80)
    #expect(bench.machine.base(of: try bench.key("power")) == .boolean(true))
    bench.pass(50)
    try bench.set("power", .boolean(false))
    #expect(bench.told().contains("brightness superseded 80: power off"))
    #expect(try bench.target("power") == .boolean(false))
    bench.pass(1000)
    #expect(bench.payloads() == [])
    #expect(try bench.phase("power") == .unchanged)
  }

  @Test(arguments: [true, false])
  func `off after a brightness was sent is sent, though the lamp still reports off`(
    isConfirmed: Bool
  ) throws {
    var bench = try Self.bench(false)
    try bench.set("brightness", 80, now: true)
    #expect(bench.send() == [#"{"brightness":80}"#])
    if isConfirmed { try bench.report("brightness", 80) }
    try bench.set("power", .boolean(false))
    bench.pass(50)
    try bench.set("power", .boolean(false))
    bench.pass(100)
    #expect(bench.send() == [#"{"power":false}"#])
    try bench.report("power", true)
    try bench.report("power", false)
    bench.pass(10_000)
    #expect(bench.payloads() == [])
    #expect(try bench.target("power") == .boolean(false))
  }

  @Test func `a failed brightness implies nothing any more`() throws {
    var bench = try Self.bench(false)
    try bench.set("brightness", 80, now: true)
    bench.send()
    bench.pass(5000)
    #expect(try bench.phase("brightness") == .failed)
    #expect(try bench.target("power") == .boolean(false))
    try bench.set("power", .boolean(false), now: true)
    #expect(bench.payloads() == [])
  }

  @Test func `off ends a brightness that would be repeated, or is held`() throws {
    var bench = try Self.bench(true, retries: 2)
    try bench.set("brightness", 80, now: true)
    bench.send()
    try bench.set("power", .boolean(false), now: true)
    #expect(bench.told().contains("brightness superseded 80: power off"))
    #expect(bench.send() == [#"{"power":false}"#])
    try bench.report("power", false)
    bench.pass(5000)
    #expect(bench.payloads() == [])

    bench.online(false)
    try bench.set("brightness", 80, now: true)
    try bench.set("power", .boolean(false), now: true)
    bench.online(true)
    // The off is sent although the lamp was off: it was away, and may have come back otherwise.
    #expect(bench.payloads() == [#"{"power":false}"#])
  }

  @Test func `a newer brightness ends an off`() throws {
    var bench = try Self.bench(true)
    try bench.set("power", .boolean(false))
    try bench.set("brightness", 80)
    #expect(bench.told().contains("power superseded false: brightness 80"))
    #expect(bench.machine.base(of: try bench.key("power")) == .boolean(true))
    bench.pass(1000)
    #expect(bench.send() == [#"{"brightness":80}"#])
  }

  @Test func `a brightness is unchanged only if the lamp is on`() throws {
    var bench = try Self.bench(false)
    try bench.set("brightness", 40, now: true)
    #expect(bench.send() == [#"{"brightness":40}"#])
    try bench.report("power", true)
    try bench.report("brightness", 40)
    try bench.set("brightness", 40, now: true)
    #expect(bench.payloads() == [])
    #expect(try bench.phase("brightness") == .unchanged)
  }

  @Test func `a brightness of 0 implies off`() throws {
    var bench = try Self.bench(true)
    try bench.set("power", .boolean(true))
    try bench.set("brightness", 0)
    #expect(bench.told().contains("power superseded true: brightness 0"))
    #expect(bench.machine.base(of: try bench.key("power")) == .boolean(false))
    try bench.set("power", .boolean(false))
    bench.pass(1000)
    #expect(bench.payloads() == [#"{"power":false,"brightness":0}"#])
  }

  /// Two properties that both imply `power`, of which the older one waits for quiet.
  @Test(arguments: [true, false])
  func `of a brightness of 0 and a warmth the newer one decides`(isDark: Bool) throws {
    var lamp = Self.lamp()
    lamp.properties.append(lamp.properties[1])
    lamp.properties[2].id = "warmth"
    lamp.properties[2].command.payload = PayloadTemplate(.object([.init("warmth", "$value")]))
    var bench = Bench([lamp])
    try bench.set(isDark ? "warmth" : "brightness", isDark ? 30 : 0)
    bench.pass(50)
    try bench.set(isDark ? "brightness" : "warmth", isDark ? 0 : 30)
    let end = isDark ? "warmth superseded 30: brightness 0" : "brightness superseded 0: warmth 30"
    #expect(bench.told().contains(end))
    bench.pass(1000)
    #expect(bench.payloads() == [isDark ? #"{"brightness":0}"# : #"{"warmth":30}"#])
  }

  @Test func `a toggle counts from what a brightness implies`() throws {
    var bench = try Self.bench(false)
    try bench.set("brightness", 80)
    try bench.toggle("power")
    #expect(try bench.target("power") == .boolean(false))
    try bench.set("brightness", 80, now: true)
    bench.send()
    try bench.toggle("power")
    bench.pass(100)
    #expect(bench.send() == [#"{"power":false}"#])
  }

  @Test func `off by hand ends what is held or repeated, not what is pending`() throws {
    var bench = try Self.bench(true, retries: 2)
    bench.online(false)
    try bench.set("brightness", 80, now: true)
    _ = bench.told()
    try bench.report("power", false)
    #expect(bench.told() == ["brightness superseded 80: changed at the device"])
    bench.online(true)
    try bench.report("power", true)
    try bench.set("brightness", 60)
    try bench.report("power", false)
    bench.pass(300)
    #expect(bench.send() == [#"{"brightness":60}"#])
    try bench.report("power", true)
    try bench.report("power", false)
    bench.pass(5000)
    #expect(bench.payloads() == [])
  }

  @Test func `an on and a brightness do not end each other`() throws {
    for names in [["power", "brightness"], ["brightness", "power"]] {
      var bench = try Self.bench(false)
      for name in names {
        try bench.set(name, name == "power" ? .boolean(true) : .number(80))
      }
      bench.pass(100)
      #expect(bench.send() == [#"{"power":true,"brightness":80}"#])
    }
  }

  @Test func `what a lamp reports while it fades out is no target, until it is on again`() throws {
    var bench = try Self.bench(true)
    try bench.report("power", false)
    try bench.report("brightness", 3)
    #expect(try bench.target("brightness") == 40)
    try bench.report("power", true)
    #expect(try bench.target("brightness") == 3)
    try bench.report("brightness", 90)
    #expect(try bench.target("brightness") == 90)
  }

  @Test func `an off waits for what rides with it`() throws {
    var bench = try Self.bench(true)
    try bench.set("brightness", 60, now: true)
    let messages = bench.publishes()
    var options = ChangeOptions()
    options.rides = true
    try bench.machine.change(.set(80), of: bench.key("brightness"), at: bench.now, options)
    try bench.set("power", .boolean(false))
    bench.pass(300)
    #expect(bench.payloads() == [])
    bench.finish(messages)
    #expect(bench.send() == [#"{"power":false,"brightness":80}"#])
    bench.pass(10_000)
    #expect(bench.payloads() == [])
  }

  @Test func `an off is repeated with what was lost with it, though the lamp is off`() throws {
    var bench = try Self.bench(false)
    var options = ChangeOptions()
    options.rides = true
    try bench.machine.change(.set(80), of: bench.key("brightness"), at: bench.now, options)
    try bench.set("power", .boolean(false))
    bench.pass(300)
    let messages = bench.publishes()
    #expect(messages.count == 1)
    bench.lose(messages)
    try bench.report("power", false)
    #expect(bench.send() == [#"{"power":false,"brightness":80}"#])
    try bench.report("power", false)
    try bench.report("brightness", 80)
    bench.pass(10_000)
    #expect(bench.payloads() == [])
    let hasUnsent = bench.hasUnsent
    #expect(!hasUnsent)
  }

  @Test(arguments: [true, false])
  func `what was lost is sent alone if what it contradicted has ended, and the lamp will be on`(
    isOn: Bool
  ) throws {
    var bench = Bench([Self.warmLamp])
    try bench.report("power", .boolean(isOn))
    let messages = try bench.sendOffWithBrightness()
    try bench.set("warmth", 30)
    bench.pass(300)
    #expect(bench.send() == [#"{"warmth":30}"#])
    bench.lose(messages)
    #expect(bench.send() == [#"{"brightness":80}"#])
    bench.pass(10_000)
    let hasUnsent = bench.hasUnsent
    #expect(!hasUnsent)
  }

  @Test func `what was lost fails if what it contradicted has ended, and the lamp is off`() throws {
    var bench = Bench([Self.warmLamp])
    try bench.report("power", .boolean(true))
    let messages = try bench.sendOffWithBrightness()
    try bench.set("warmth", 30, now: true)
    #expect(bench.send() == [#"{"warmth":30}"#])
    try bench.report("warmth", 30)
    try bench.report("power", .boolean(false))
    bench.lose(messages)
    #expect(
      bench.told().contains("brightness failed 80: the connection to the broker was lost")
    )
    bench.pass(10_000)
    #expect(bench.payloads() == [])
    let hasUnsent = bench.hasUnsent
    #expect(!hasUnsent)
  }

  @Test func `what rode in a message is not repeated alone`() throws {
    var bench = try Self.bench(true, retries: 2)
    var options = ChangeOptions()
    options.rides = true
    try bench.machine.change(.set(80), of: bench.key("brightness"), at: bench.now, options)
    try bench.set("power", .boolean(false))
    bench.pass(300)
    #expect(bench.send() == [#"{"power":false,"brightness":80}"#])
    try bench.report("power", false)
    bench.pass(5000)
    #expect(bench.payloads() == [])
    #expect(try bench.phase("brightness") == .failed)
    let hasUnsent = bench.hasUnsent
    #expect(!hasUnsent)
  }

  @Test(arguments: [true, false])
  func `a step that waits for the state ends only with what it would contradict`(
    isOn: Bool
  ) throws {
    var lamp = Self.lamp()
    lamp.properties[1].state = StateSource(
      topic: "d",
      value: .whole,
      get: StateRequest(topic: "d/get", payload: [])
    )
    var bench = Bench([lamp])
    try bench.report("power", .boolean(!isOn))
    try bench.step("brightness", 10)
    try bench.set("power", .boolean(isOn))
    #expect(bench.told().contains("brightness superseded: power off") == !isOn)
    try bench.report("brightness", 40)
    #expect(try bench.target("brightness") == .number(isOn ? 50 : 40))
  }
}

extension Bench {
  /// Sends an off, and a brightness that rides with it, in one message.
  fileprivate mutating func sendOffWithBrightness() throws -> [CommandPublish] {
    var options = ChangeOptions()
    options.rides = true
    try machine.change(.set(80), of: key("brightness"), at: now, options)
    try set("power", .boolean(false))
    pass(300)
    return publishes()
  }

  /// The connection ends before the broker has answered these messages, and is made again.
  fileprivate mutating func lose(_ messages: [CommandPublish]) {
    connect(false)
    finish(messages, .lost)
    connect(true)
  }
}

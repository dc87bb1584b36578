// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

/// Devices that repeat what was asked of them, then report their way.
@Suite struct TravellingTests {
  /// 0 to 1000 in steps of 1.
  private static func dial(
    _ id: String = "level",
    adjust: (inout Property) -> Void = { _ in }
  ) -> Property {
    .seen(id) {
      $0.kind = .integer(NumberRule(range: 0...1000, step: 1))
      adjust(&$0)
    }
  }

  /// A dial that stood at `start`, was set to `value` and has repeated that; other properties
  /// beside it.
  private static func repeated(
    from start: Int64 = 10,
    _ value: Int64 = 200,
    beside others: [Property] = []
  ) throws -> Bench {
    var bench = Bench([.of("d", [dial()] + others)])
    try bench.report("level", .integer(start))
    try bench.set("level", .number(Double(value)), now: true)
    bench.send()
    try bench.report("level", .integer(value))
    #expect(bench.told().last == "level confirmed \(value)")
    return bench
  }

  // MARK: - On the way

  @Test func `a report of the way after the repetition moves the actual value only`() throws {
    var bench = try Self.repeated(from: 0)
    for value in [100, 150, 200, 180] as [JSONValue] {
      try bench.report("level", value)
      #expect(try bench.target("level") == 200)
    }
    #expect(try bench.actual("level") == 180)
    #expect(try bench.phase("level") == .confirmed)
    #expect(bench.told() == [])
  }

  @Test func `a step counts from the target meanwhile`() throws {
    var bench = try Self.repeated(from: 0)
    try bench.report("level", 100)
    try bench.step("level", 10)
    bench.pass(300)
    #expect(bench.send() == ["210"])
  }

  @Test func `a value on the way is sent, and the target is unchanged`() throws {
    var bench = try Self.repeated(from: 10, 80)
    for value in [10, 20, 30] as [JSONValue] { try bench.report("level", value) }
    let (way, target) = (Value.number(30), Value.number(80))
    #expect(bench.machine.isUnchanged(way, of: try bench.key("level")) == false)
    #expect(bench.machine.isUnchanged(target, of: try bench.key("level")) == true)
    try bench.set("level", 80, now: true)
    #expect(bench.told().last == "level unchanged 80")
    #expect(try bench.target("level") == 80)
    try bench.set("level", 30, now: true)
    #expect(bench.send() == ["30"])
  }

  @Test func `a value that waits for its lane leaves although the way passes it`() throws {
    var settings = CommandSettings()
    settings.lanes["bus"] = LaneLimits(rate: 1, burst: 1)
    var bench = Bench(
      [.of("d", lane: "bus", [Self.dial("a"), Self.dial("b")])],
      settings: settings
    )
    try bench.report("b", 10)
    try bench.set("b", 80, now: true)
    bench.send()
    try bench.report("b", 80)
    bench.pass(1000)
    try bench.set("a", 1, now: true)
    bench.send()
    try bench.report("b", 20)
    try bench.set("b", 30, now: true)
    try bench.report("b", 30)
    bench.pass(1000)
    #expect(bench.send() == ["30"])
  }

  @Test func `the repetition may come before the broker's acknowledgement`() throws {
    var bench = Bench(Self.dial())
    try bench.report("level", 0)
    try bench.set("level", 200, now: true)
    let leaving = bench.publishes()
    for value in [200, 100] as [JSONValue] { try bench.report("level", value) }
    bench.finish(leaving)
    #expect(bench.told().suffix(2) == ["level sent 200", "level confirmed 200"])
    #expect(try bench.target("level") == 200)
    #expect(bench.wait() == 5000)
  }

  @Test func `every report of a color is of the way`() throws {
    var color = Property.word("color", kind: .color)
    color.state = StateSource(topic: "color/state", value: .whole)
    color.confirm = Confirmation()
    var bench = Bench(color)
    let (red, blue) = (Value.color(.rgb(red: 255, green: 0, blue: 0)), JSONValue.string("#0000ff"))
    try bench.report("color", blue)
    try bench.set("color", red, now: true)
    bench.send()
    try bench.report("color", "#00ff00")
    #expect(try bench.target("color") == red)
    try bench.report("color", "#ff0000")
    #expect(bench.told().last == "color confirmed #ff0000")
    try bench.report("color", blue)
    #expect(try bench.target("color") == red)
    bench.pass(4999)
    #expect(try bench.target("color") == red)
    bench.pass(1)
    #expect(try bench.target("color")?.bareText == "#0000ff")
  }

  @Test func `a word has no way`() throws {
    var bench = Bench(
      .word("power", kind: .boolean) {
        $0.state = StateSource(topic: "power/state", value: .whole)
        $0.confirm = Confirmation()
      }
    )
    try bench.report("power", false)
    try bench.set("power", .boolean(true), now: true)
    bench.send()
    try bench.report("power", true)
    #expect(bench.wait() == nil)
    try bench.report("power", false)
    #expect(try bench.target("power") == .boolean(false))
  }

  // MARK: - At rest

  @Test func `the key is at rest after the time of a confirmation`() throws {
    var bench = try Self.repeated()
    #expect(bench.wait() == 5000)
    bench.pass(5000)
    #expect(bench.wait() == nil)
    try bench.report("level", 150)
    #expect(try bench.target("level") == 150)
    try bench.set("level", 150, now: true)
    #expect(bench.told().last == "level unchanged 150")
  }

  @Test func `a report that comes nearer to the target prolongs the time`() throws {
    var bench = try Self.repeated()
    bench.pass(1000)
    try bench.report("level", 100)
    #expect(bench.wait() == 4000)
    bench.pass(3000)
    try bench.report("level", 150)
    #expect(bench.wait() == 5000)
    bench.pass(1000)
    try bench.report("level", 150)
    try bench.report("level", 140)
    #expect(bench.wait() == 4000)
  }

  @Test func `a key that comes to rest elsewhere takes that value as target`() throws {
    var bench = try Self.repeated()
    bench.pass(1000)
    try bench.report("level", 100)
    bench.pass(3999)
    #expect(try bench.target("level") == 200)
    bench.machine.log.statuses.changedKeys = []
    bench.pass(1)
    #expect(try bench.target("level") == 100)
    #expect(bench.machine.log.statuses.changedKeys == [try bench.key("level")])
    #expect(bench.told() == [])
    #expect(bench.wait() == nil)
  }

  @Test func `a transition that is longer than the confirmation counts`() throws {
    var bench = Bench(Self.dial())
    try bench.report("level", 10)
    try bench.set("level", 200, options: [.init("transition", 20)], now: true)
    bench.send()
    #expect(bench.wait() == 25_000)
    try bench.report("level", 200)
    #expect(bench.wait() == 20_000)
  }

  @Test func `five minutes after the sending the key is at rest in any case`() throws {
    var bench = try Self.repeated(from: 0, 1000)
    for value in 1...148 {
      bench.pass(2000)
      try bench.report("level", .integer(Int64(value)))
    }
    #expect(bench.wait() == 4000)
    #expect(try bench.target("level") == 1000)
    bench.pass(4000)
    #expect(try bench.target("level") == 148)
    #expect(bench.wait() == nil)
  }

  @Test func `the time goes on while the broker or the device is away`() throws {
    var bench = try Self.repeated()
    try bench.report("level", 100)
    bench.online(false)
    bench.connect(false)
    bench.pass(4999)
    #expect(try bench.target("level") == 200)
    bench.pass(1)
    #expect(try bench.target("level") == 100)
  }

  // MARK: - The end of the way

  @Test func `a report outside the range ends the time at once`() throws {
    var bench = try Self.repeated()
    try bench.report("level", 100)
    try bench.report("level", 9)
    #expect(try bench.target("level") == 9)
    #expect(bench.wait() == nil)
    try bench.report("level", 50)
    #expect(try bench.target("level") == 50)
  }

  private static var stop: Property {
    .word("button", kind: .action(["STOP", "OPEN"]), delay: 0) {
      $0.urgent = [.text("STOP")]
      $0.ends = ["level"]
    }
  }

  private static var press: Property {
    .word("button", kind: .action(["CLOSE"]), delay: 0) {
      $0.urgent = [.text("CLOSE")]
      $0.ends = ["level"]
    }
  }

  @Test func `an action that ends the property ends the time at once`() throws {
    var bench = try Self.repeated(beside: [Self.stop])
    try bench.report("level", 100)
    try bench.set("button", .text("OPEN"))
    #expect(try bench.target("level") == 200)
    try bench.set("button", .text("STOP"))
    #expect(try bench.target("level") == 100)
    #expect(bench.wait() == nil)
    bench.send()
    try bench.report("level", 110)
    #expect(try bench.target("level") == 110)
  }

  @Test func `a value at the device that ends the property ends the time at once`() throws {
    let mode = Property.word("mode", kind: .choice(["off", "heat"])) {
      $0.state = StateSource(topic: "mode", value: .whole)
      $0.urgent = [.text("off")]
      $0.ends = ["level"]
    }
    var bench = try Self.repeated(beside: [mode])
    try bench.report("mode", "heat")
    try bench.report("level", 100)
    #expect(try bench.target("level") == 200)
    try bench.report("mode", "off")
    #expect(try bench.target("level") == 100)
    #expect(bench.wait() == nil)
  }

  @Test func `the way of a press does not end a value that the device has not heard`() throws {
    var bench = Bench([.of("d", [Self.dial(), Self.press])])
    try bench.report("level", 50)
    try bench.set("button", .text("CLOSE"))
    bench.send()
    try bench.report("level", 48)
    try bench.set("level", 60, now: true)
    let leaving = bench.publishes()
    try bench.report("level", 40)
    #expect(bench.told().last == "level sending 60")
    bench.finish(leaving, .lost)
    bench.connect(false)
    try bench.report("level", 32)
    bench.connect(true)
    #expect(bench.send() == ["60"])
    // It has heard it, and is moved by a hand.
    try bench.report("level", 20)
    #expect(bench.told().last == "level superseded 60: changed at the device")
  }

  @Test func `nor where it passes that value`() throws {
    var bench = Bench([.of("d", [Self.dial(), Self.press])])
    try bench.report("level", 80)
    try bench.set("button", .text("CLOSE"))
    bench.send()
    try bench.set("level", 60, now: true)
    let leaving = bench.publishes()
    for value in [70, 60, 50] as [JSONValue] { try bench.report("level", value) }
    bench.finish(leaving, .lost)
    bench.connect(false)
    for value in [60, 40] as [JSONValue] { try bench.report("level", value) }
    bench.connect(true)
    #expect(bench.send() == ["60"])
  }

  @Test func `a device that has reported no way for a while is at rest after a press`() throws {
    var bench = Bench([.of("d", [Self.dial(), Self.press])])
    try bench.report("level", 50)
    try bench.set("button", .text("CLOSE"))
    bench.send()
    try bench.report("level", 48)
    bench.pass(5000)
    try bench.set("level", 60, now: true)
    _ = bench.publishes()
    try bench.report("level", 40)
    #expect(bench.told().last == "level superseded 60: changed at the device")
  }

  @Test func `after five minutes a press moves nothing any more`() throws {
    var bench = Bench([.of("d", [Self.dial(), Self.press])])
    try bench.report("level", 50)
    try bench.set("button", .text("CLOSE"))
    bench.send()
    bench.pass(300_000)
    try bench.set("level", 60, now: true)
    _ = bench.publishes()
    try bench.report("level", 40)
    #expect(bench.told().last == "level superseded 60: changed at the device")
  }

  // MARK: - Newer commands

  @Test func `a newer command has a new target, and the range stays until the key is at rest`()
    throws
  {
    var bench = try Self.repeated(from: 10, 80)
    try bench.report("level", 20)
    try bench.set("level", 30, now: true)
    bench.send()
    for value in [80, 60] as [JSONValue] { try bench.report("level", value) }
    #expect(try bench.target("level") == 30)
    try bench.report("level", 30)
    #expect(bench.told().last == "level confirmed 30")
    bench.pass(4999)
    for value in [10, 80] as [JSONValue] { try bench.report("level", value) }
    #expect(try bench.target("level") == 30)
    bench.pass(1)
    try bench.report("level", 80)
    #expect(try bench.target("level") == 80)
  }

  @Test func `five minutes count from the newest command`() throws {
    var bench = try Self.repeated(from: 0, 1000)
    for value in 1...50 {
      bench.pass(2000)
      try bench.report("level", .integer(Int64(value)))
    }
    try bench.set("level", 999, now: true)
    bench.send()
    try bench.report("level", 999)
    for value in 51...190 {
      bench.pass(2000)
      try bench.report("level", .integer(Int64(value)))
    }
    #expect(try bench.target("level") == 999)
  }

  @Test func `the target of a cancelled change goes back to the last confirmed one`() throws {
    var bench = try Self.repeated()
    try bench.report("level", 100)
    try bench.set("level", 50)
    #expect(try bench.target("level") == 50)
    bench.machine.cancel(try bench.key("level"), at: bench.now)
    #expect(try bench.target("level") == 200)
  }

  @Test func `so does that of a command that was lost and waits to be repeated`() throws {
    var bench = try Self.repeated()
    try bench.set("level", 50, now: true)
    bench.finish(bench.publishes(), .lost)
    bench.connect(false)
    bench.machine.cancel(try bench.key("level"), at: bench.now)
    #expect(try bench.target("level") == 200)
    #expect(
      bench.machine.isUnchanged(.number(200), of: try bench.key("level")) == false
    )
    bench.connect(true)
    try bench.set("level", 200, now: true)
    #expect(bench.send() == ["200"])
  }

  @Test func `a command that failed leaves what the device reports`() throws {
    var bench = Bench(Self.dial())
    try bench.report("level", 10)
    try bench.set("level", 80, now: true)
    bench.send()
    bench.pass(4000)
    try bench.report("level", 20)
    bench.pass(1000)
    #expect(bench.told().last == "level failed 80: not confirmed within 5s")
    #expect(try bench.target("level") == 20)
    #expect(bench.wait() == 4000)
    try bench.report("level", 30)
    #expect(try bench.target("level") == 30)
    #expect(bench.wait() == 5000)
    try bench.set("level", 30, now: true)
    #expect(bench.send() == ["30"])
  }

  @Test func `after a failure without a report nothing is due until the next report`()
    throws
  {
    var bench = Bench(Self.dial())
    try bench.report("level", 10)
    try bench.set("level", 80, now: true)
    bench.send()
    bench.pass(5000)
    #expect(bench.wait() == nil)
    bench.pass(600_000)
    try bench.report("level", 20)
    #expect(try bench.target("level") == 20)
    #expect(bench.wait() == 5000)
  }

  @Test func `a hand at the device ends a repetition however long that has waited`() throws {
    var bench = Bench(Self.dial())
    try bench.report("level", 10)
    try bench.set("level", 80, ttl: .seconds(3600), now: true)
    let leaving = bench.publishes()
    try bench.report("level", 20)
    bench.finish(leaving, .lost)
    bench.connect(false)
    bench.pass(900_000)
    try bench.report("level", 90)
    #expect(bench.told().last == "level superseded 80: changed at the device")
    #expect(bench.wait() == nil)
  }

  // MARK: - Acknowledged

  @Test func `after the device's own acknowledgement the time begins with the first report`() throws
  {
    var bench = Bench(Self.dial())
    try bench.report("level", 10)
    try bench.set("level", 200, now: true)
    bench.send()
    try bench.report("level", 50)
    try bench.acknowledge("level", 200)
    #expect(bench.wait() == nil)
    bench.pass(600_000)
    #expect(try bench.target("level") == 200)
    let key = try bench.key("level")
    #expect(bench.machine.isUnchanged(.number(200), of: key) == false)
    try bench.report("level", 50)
    #expect(bench.wait() == 5000)
    #expect(bench.machine.isUnchanged(.number(200), of: key) == true)
    bench.pass(4000)
    try bench.report("level", 60)
    bench.pass(4999)
    #expect(try bench.target("level") == 200)
    bench.pass(1)
    #expect(try bench.target("level") == 60)
  }

  @Test func `without confirmation the time begins with the first report, and takes 5 s`() throws {
    var bench = Bench(Self.dial { $0.confirm = nil })
    try bench.report("level", 10)
    try bench.set("level", 200, now: true)
    bench.send()
    #expect(bench.wait() == nil)
    #expect(try bench.target("level") == 200)
    let key = try bench.key("level")
    try bench.report("level", 100)
    #expect(bench.machine.isUnchanged(.number(200), of: key) == false)
    #expect(try bench.target("level") == 200)
    #expect(bench.wait() == 5000)
    try bench.report("level", 200)
    #expect(bench.machine.isUnchanged(.number(200), of: key) == true)
    try bench.report("level", 150)
    bench.pass(5000)
    #expect(try bench.target("level") == 150)
  }

  // MARK: - Where the device stands is unknown

  @Test func `the first other report of an unknown device is where it started`() throws {
    var bench = Bench(Self.dial())
    try bench.set("level", 200, now: true)
    bench.send()
    for value in [200, 10, 50] as [JSONValue] { try bench.report("level", value) }
    #expect(try bench.target("level") == 200)
    try bench.report("level", 9)
    #expect(try bench.target("level") == 9)
  }

  @Test func `a resumed value travels like any other`() throws {
    var bench = Bench(Self.dial())
    _ = bench.machine.resume(
      200,
      of: try bench.key("level"),
      at: bench.now,
      expiresAt: bench.now.advanced(by: .seconds(60)),
      origin: nil,
      options: nil
    )
    try bench.report("level", 10)
    bench.send()
    for value in [200, 100] as [JSONValue] { try bench.report("level", value) }
    #expect(try bench.target("level") == 200)
    #expect(bench.wait() == 5000)
  }

  // MARK: - Implied properties

  /// A lamp whose brightness turns it on; on, at 200 and at rest.
  private static func lamp() throws -> Bench {
    let power = Property.word("power", kind: .boolean) {
      $0.state = StateSource(topic: "power/state", value: .whole)
      $0.confirm = Confirmation()
    }
    let level = Self.dial {
      $0.implies = [Implication(property: "power", value: .boolean(true))]
    }
    var bench = Bench(power, level)
    try bench.report("power", true)
    try bench.report("level", 200)
    return bench
  }

  @Test func `a lamp that fades out keeps the target of its brightness`() throws {
    var bench = try Self.lamp()
    try bench.report("power", false)
    for value in [100, 0] as [JSONValue] {
      try bench.report("level", value)
      #expect(try bench.target("level") == 200)
    }
    #expect(try bench.actual("level") == 0)
    bench.pass(600_000)
    #expect(try bench.target("level") == 200)
    try bench.report("power", true)
    try bench.report("level", 90)
    #expect(try bench.target("level") == 90)
  }

  @Test func `a lamp that is turned off on its way keeps the target of its brightness`() throws {
    var bench = try Self.lamp()
    try bench.set("level", 220, now: true)
    bench.send()
    for value in [220, 210] as [JSONValue] { try bench.report("level", value) }
    try bench.report("power", false)
    for value in [150, 0] as [JSONValue] { try bench.report("level", value) }
    #expect(bench.wait() == 5000)
    bench.pass(5000)
    #expect(try bench.actual("level") == 0)
    #expect(try bench.target("level") == 220)
    #expect(bench.wait() == nil)
  }

  // MARK: - Others

  @Test func `a reload ends the time of a property that does not travel any more`() throws {
    var bench = try Self.repeated()
    try bench.report("level", 100)
    let same = Registry([.of("d", [Self.dial()])], continuing: bench.machine.registry)
    bench.machine.reloadAtOnce(same, at: bench.now)
    #expect(try bench.target("level") == 200)
    #expect(bench.wait() == 5000)
    let silent = Self.dial {
      $0.states = []
      $0.confirm = nil
    }
    let other = Registry([.of("d", [silent])], continuing: bench.machine.registry)
    bench.machine.reloadAtOnce(other, at: bench.now)
    #expect(try bench.target("level") == 100)
    #expect(bench.wait() == nil)
  }

  @Test func `a key that another gateway drives does not travel`() throws {
    var bench = try Self.repeated()
    try bench.report("level", 100)
    bench.machine.forget(try bench.key("level"), at: bench.now)
    #expect(bench.wait() == nil)
    bench.machine.show(KeyStatus(target: 7, actual: 8), of: try bench.key("level"))
    bench.pass(5000)
    #expect(try bench.target("level") == 7)
  }
}

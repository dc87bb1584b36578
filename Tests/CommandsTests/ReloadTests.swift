// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

@Suite struct ReloadTests {
  private func reload(_ bench: inout Bench, _ devices: Device...) { reload(&bench, devices) }

  private func reload(_ bench: inout Bench, _ devices: [Device]) {
    let registry = Registry(devices, continuing: bench.machine.registry)
    bench.machine.reloadAtOnce(registry, at: bench.now)
  }

  @Test func `what is pending keeps its deadline; the new policy is for the next change`() throws {
    var bench = Bench([.of("d", [.level("a"), .level("b")])])
    try bench.set("a", 10)
    bench.pass(100)
    reload(&bench, .of("d", [.level("a", delay: 1000), .level("b")]))
    #expect(bench.wait() == 200)
    bench.pass(200)
    #expect(bench.send() == ["10"])
    try bench.set("a", 11)
    #expect(bench.wait() == 1000)
  }

  @Test func `new devices and properties are numbered behind the old ones and work`() throws {
    var bench = Bench([.of("d", [.level("a")])])
    try bench.set("a", 1)
    reload(&bench, .of("e", [.level("x", delay: 50)]), .of("d", [.level("n"), .level("a")]))
    #expect(bench.machine.registry.properties.map(\.key) == ["d/a", "e/x", "d/n"])
    #expect(bench.machine.registry.indices(matching: "*").map(\.rawValue) == [1, 2, 0])
    try bench.set("e/x", 2)
    try bench.set("n", 3)
    bench.pass(50)
    #expect(bench.send() == ["2"])
    bench.pass(250)
    #expect(bench.send().sorted() == ["1", "3"])
  }

  @Test func `what waits of a key that is gone is cancelled, and the key with it`() throws {
    var bench = Bench([.of("d", [.level("a"), .level("b")]), .of("e", [.level("x")])])
    try bench.set("a", 1)
    try bench.set("b", 2)
    try bench.set("e/x", 3, now: true)
    let leaving = bench.publishes()
    _ = bench.told()
    reload(&bench, .of("d", [.level("b")]))
    #expect(
      bench.told() == [
        "a cancelled 1: its device file names it no more",
        "x cancelled 3: its device file names it no more",
      ]
    )
    #expect(throws: ValidationError.self) { try bench.machine.registry.index(of: "d/a") }
    #expect(throws: ValidationError.self) { try bench.machine.registry.index(of: "e/x") }
    #expect(bench.machine.registry.indices(matching: "*").map(\.rawValue) == [1])
    bench.finish(leaving)
    #expect(bench.told() == [])
    bench.pass(300)
    #expect(bench.send() == ["2"])
    #expect(bench.isDrained == true)
  }

  @Test func `a key that comes back has its number again, and nothing of before`() throws {
    var bench = Bench([.of("d", [.seen("a"), .level("b")])])
    try bench.report("a", 7)
    reload(&bench, .of("d", [.level("b")]))
    reload(&bench, .of("d", [.seen("a"), .level("b")]))
    #expect(try bench.key("a") == KeyIndex(0))
    #expect(try bench.actual("a") == nil)
    #expect(try bench.target("a") == nil)
    try bench.set("a", 8)
    bench.pass(300)
    #expect(bench.send() == ["8"])
  }

  @Test func `a value that is not allowed any more is cancelled, another stays`() throws {
    var bench = Bench([.of("d", [.level("a"), .level("b")])])
    try bench.set("a", 90)
    try bench.set("b", 40)
    _ = bench.told()
    let narrow: (inout Property) -> Void = { $0.kind = .number(NumberRule(range: 0...50, step: 1)) }
    reload(&bench, .of("d", [.level("a", adjust: narrow), .level("b", adjust: narrow)]))
    #expect(bench.told() == ["a cancelled 90: its device file was changed"])
    #expect(try bench.target("a") == nil)
    bench.pass(300)
    #expect(bench.send() == ["40"])
  }

  @Test func `what waits of a property that becomes read-only is cancelled`() throws {
    var readOnly = Property(readOnly: "a", kind: .number(NumberRule()))
    readOnly.states = Property.seen("a").states
    var bench = Bench([.of("d", [.seen("a", retries: 2), .level("b")])])
    try bench.set("a", 5, now: true)
    bench.send()
    try bench.set("a", 6)
    _ = bench.told()
    reload(&bench, .of("d", [readOnly, .level("b")]))
    #expect(
      bench.told() == [
        "a cancelled 6: its device file was changed", "a superseded 5: its device file was changed",
      ]
    )
    bench.pass(10_000)
    #expect(bench.send() == [])
    try bench.report("a", 7)
    #expect(try bench.actual("a") == 7)
    #expect(try bench.target("a") == 7)
    #expect(throws: ValidationError.self) { try bench.step("a", 1) }
  }

  @Test func `a command whose proof is gone ends, and nothing awaits it`() throws {
    var bench = Bench(.seen("a"))
    try bench.set("a", 5, now: true)
    bench.send()
    _ = bench.told()
    reload(&bench, .of("d", [.level("a")]))
    #expect(bench.told() == ["a superseded 5: its device file was changed"])
    #expect(bench.wait() == nil)
    bench.pass(10_000)
    #expect(bench.told() == [])
  }

  @Test func `a command in flight is answered as if nothing had happened`() throws {
    var bench = Bench(.seen("a"))
    try bench.set("a", 5, now: true)
    let leaving = bench.publishes()
    reload(&bench, .of("n", [.level("z")]), .of("d", [.seen("a", retries: 2)]))
    bench.finish(leaving)
    try bench.report("a", 5)
    #expect(bench.told().suffix(2) == ["a sent 5", "a confirmed 5"])
  }

  @Test func `lanes keep their tokens, and what waits its order`() throws {
    var settings = CommandSettings()
    settings.lanes["bus"] = LaneLimits(rate: 1, burst: 1)
    let names = ["p", "q", "r"]
    let devices = names.map { Device.of($0, lane: "bus", [.level("x")]) }
    var bench = Bench(devices, settings: settings)
    for (number, name) in names.reversed().enumerated() {
      try bench.set("\(name)/x", .number(Double(number)), now: true)
    }
    #expect(bench.send() == ["0"])
    let registry = Registry(devices + [.of("s", [])], continuing: bench.machine.registry)
    bench.machine.reloadAtOnce(registry, at: bench.now)
    #expect(bench.send() == [])
    bench.pass(1000)
    #expect(bench.send() == ["1"])
    bench.pass(1000)
    #expect(bench.send() == ["2"])
  }

  @Test func `a lane's new limit counts at once and gives no token away`() throws {
    var settings = CommandSettings()
    settings.lanes["bus"] = LaneLimits(rate: 0.1, burst: 2)
    let devices = ["p", "q", "r", "s"].map { Device.of($0, lane: "bus", [.level("x")]) }
    var bench = Bench(devices, settings: settings)
    for device in devices { try bench.set("\(device.id)/x", 1, now: true) }
    #expect(bench.send().count == 2)

    bench.machine.reloadAtOnce(
      bench.machine.registry,
      lanes: ["bus": LaneLimits(rate: 10, burst: 1)],
      at: bench.now
    )

    #expect(bench.send() == [])
    bench.pass(100)
    #expect(bench.send().count == 1)
    bench.pass(99)
    #expect(bench.send() == [])
    bench.pass(1)
    #expect(bench.send().count == 1)
  }

  @Test func `a device whose availability topic is gone counts as there`() throws {
    var bench = Bench([.of("d", [.level("a")])])
    bench.online(false)
    try bench.set("a", 5, now: true)
    #expect(bench.send() == [])
    reload(&bench, .of("d", [.level("a")], hasAvailability: false))
    #expect(bench.send() == ["5"])
    #expect(bench.wait() == nil)
  }

  private static func narrow(_ property: inout Property) {
    property.kind = .number(NumberRule(range: 0...50, step: 1))
  }

  @Test func `a value in its lane that is not allowed any more ends, and the newer one stays`()
    throws
  {
    var bench = Bench([.of("d", [.level("a")])])
    bench.online(false)
    try bench.set("a", 90, now: true)
    try bench.set("a", 40)
    _ = bench.told()
    reload(&bench, .of("d", [.level("a", adjust: Self.narrow)]))
    #expect(bench.told() == ["a cancelled 90: its device file was changed"])
    bench.pass(300)
    bench.online(true)
    #expect(bench.send() == ["40"])
  }

  @Test func `what waits follows its device into another lane, behind what waits there`() throws {
    var settings = CommandSettings()
    settings.lanes = ["old": LaneLimits(rate: 0.1, burst: 1), "new": LaneLimits(rate: 1, burst: 1)]
    let devices: (String) -> [Device] = { lane in
      [
        .of("a", lane: "old", [.level("x")]), .of("n", lane: "new", [.level("x")]),
        .of("d", lane: lane, [.level("x"), .level("y") { $0.urgent = [0] }]),
      ]
    }
    var bench = Bench(devices("old"), settings: settings)
    try bench.set("a/x", 1, now: true)
    try bench.set("n/x", 2, now: true)
    #expect(bench.send().sorted() == ["1", "2"])
    try bench.set("n/x", 3, now: true)
    try bench.set("d/x", 4, now: true)
    try bench.set("d/y", 0)
    #expect(bench.send() == [])
    reload(&bench, devices("new"))
    #expect(bench.send() == [])
    var sent: [[String]] = []
    for _ in 0..<4 {
      bench.pass(1000)
      sent.append(bench.send())
    }
    #expect(sent == [["0"], ["3"], ["4"], []])
  }

  // MARK: - Between two steps

  /// Begins to continue with other devices, which count already; no key was reached yet.
  private func replace(_ bench: inout Bench, _ devices: Device...) { replace(&bench, devices) }

  private func replace(_ bench: inout Bench, _ devices: [Device]) {
    let registry = Registry(devices, continuing: bench.machine.registry)
    bench.machine.beginReload(registry)
    while bench.machine.continueReload(keys: 1, at: bench.now) != .replaced {}
    _ = bench.told()
  }

  /// The events of the remaining steps.
  private func finish(_ bench: inout Bench) -> [String] {
    while bench.machine.continueReload(keys: 1, at: bench.now) != .finished {}
    return bench.told()
  }

  @Test func `steps that wait for the state of a removed key end once`() throws {
    let asking = Property.seen("a") { $0.state?.get = StateRequest(topic: "a/get", payload: []) }
    var bench = Bench([.of("d", [.level("b"), asking])])
    try bench.step("a", 5)
    try bench.step("a", 1)
    replace(&bench, .of("d", [.level("b")]))
    let ended = "a cancelled: its device file names it no more"
    #expect(finish(&bench) == [ended, ended])
    bench.pass(60_000)
    #expect(bench.told() == [])
    #expect(bench.hasUnsent == false)
  }

  @Test func `a confirmation that the new definition does not ask for is not overdue`() throws {
    var bench = Bench(.level("b"), .seen("a"))
    try bench.set("a", 5, now: true)
    bench.send()
    replace(&bench, .of("d", [.level("b"), .level("a")]))
    bench.pass(6000)
    #expect(bench.told() == ["a superseded 5: its device file was changed"])
    #expect(finish(&bench) == [])
  }

  @Test func `a value expires by the clock although its key was not reached yet`() throws {
    var bench = Bench([.of("d", [.level("b"), .level("a")])])
    bench.online(false)
    try bench.set("a", 5, ttl: .seconds(1), now: true)
    replace(&bench, .of("d", [.level("b"), .level("a", delay: 1000)]))
    bench.pass(1000)
    #expect(bench.told() == ["a expired 5: the device is offline"])
    #expect(finish(&bench) == [])
  }

  @Test func `a lane full of values that are not allowed any more is emptied in steps`() throws {
    let devices = { (adjust: (inout Property) -> Void) -> [Device] in
      (0..<600).map { .of("d\($0)", [.level("a", adjust: adjust)]) }
    }
    var bench = Bench(devices { _ in })
    for number in 0..<600 { try bench.set("d\(number)/a", 90, now: true) }
    replace(&bench, devices(Self.narrow))
    var ended: [Int] = []
    repeat {
      #expect(bench.send() == [])
      ended.append(bench.told().count)
    } while bench.machine.continueReload(keys: 1, at: bench.now) != .finished && ended.count < 3
    #expect(ended == [256, 256, 88])
    #expect(bench.hasUnsent == false)
  }

  @Test func `a value that is quiet is checked before it settles`() throws {
    var bench = Bench(.level("b"), .level("a"))
    try bench.set("a", 90)
    replace(&bench, .of("d", [.level("b"), .level("a", adjust: Self.narrow)]))
    bench.pass(300)
    #expect(bench.told() == ["a cancelled 90: its device file was changed"])
    #expect(bench.send() == [])
    #expect(finish(&bench) == [])
  }

  @Test func `a value that fits settles as if nothing had happened`() throws {
    var bench = Bench(.level("b"), .level("a"))
    try bench.set("a", 40)
    replace(&bench, .of("d", [.level("b"), .level("a", adjust: Self.narrow)]))
    bench.pass(300)
    #expect(try bench.target("a") == 40)
    #expect(bench.send() == ["40"])
    #expect(finish(&bench) == ["a sending 40", "a sent 40"])
  }

  @Test func `a device whose availability topic is gone counts as online at once`() throws {
    var bench = Bench([.of("d", [.level("b"), .level("a")])])
    bench.online(false)
    try bench.set("a", 5, now: true)
    replace(&bench, .of("d", [.level("b"), .level("a")], hasAvailability: false))
    #expect(bench.machine.sendQueue.isDeviceOnline(0) == true)
    #expect(finish(&bench) == [])
    #expect(bench.send() == ["5"])
  }

  @Test func `a message waits for no companion that its new definition does not allow`() throws {
    let member: (inout Property) -> Void = {
      let content = JSONValue.Member($0.id, .string(PayloadTemplate.placeholder))
      $0.command = CommandEndpoint(topic: "set", payload: PayloadTemplate(.object([content])))
    }
    let light: (Double) -> Device = { maximum in
      var light = Device.of(
        "d",
        ["a", "b"].map { id in
          .level(id) { property in
            member(&property)
            property.kind = .number(NumberRule(range: 0...maximum, step: 1))
          }
        }
      )
      light.merge = true
      return light
    }
    var bench = Bench([light(100)])
    try bench.set("b", 90)
    replace(&bench, light(50))
    try bench.set("a", 5, now: true)
    #expect(bench.send() == [#"{"a":5}"#])
    #expect(bench.told().contains("b cancelled 90: its device file was changed"))
    #expect(finish(&bench) == [])
  }
}

extension CommandStateMachine {
  /// All steps of a reload.
  mutating func reloadAtOnce(
    _ registry: Registry,
    lanes: [String: LaneLimits]? = nil,
    at now: Moment
  ) {
    advance(to: now)
    beginReload(registry, lanes: lanes)
    while continueReload(keys: 3, at: now) != .finished {}
  }
}

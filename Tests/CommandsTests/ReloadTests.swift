// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing

@Suite struct ReloadTests {
  private func reload(_ bench: inout Bench, _ devices: Device...) {
    let registry = Registry(devices, continuing: bench.machine.registry)
    bench.machine.reload(registry, at: bench.now)
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
    settings.lanes["bus"] = (rate: 1, burst: 1)
    let names = ["p", "q", "r"]
    let devices = names.map { Device.of($0, lane: "bus", [.level("x")]) }
    var bench = Bench(devices, settings: settings)
    for (number, name) in names.reversed().enumerated() {
      try bench.set("\(name)/x", .number(Double(number)), now: true)
    }
    #expect(bench.send() == ["0"])
    let registry = Registry(devices + [.of("s", [])], continuing: bench.machine.registry)
    bench.machine.reload(registry, at: bench.now)
    #expect(bench.send() == [])
    bench.pass(1000)
    #expect(bench.send() == ["1"])
    bench.pass(1000)
    #expect(bench.send() == ["2"])
  }

  @Test func `a lane's new limit counts at once and gives no token away`() throws {
    var settings = CommandSettings()
    settings.lanes["bus"] = (rate: 0.1, burst: 2)
    let devices = ["p", "q", "r", "s"].map { Device.of($0, lane: "bus", [.level("x")]) }
    var bench = Bench(devices, settings: settings)
    for device in devices { try bench.set("\(device.id)/x", 1, now: true) }
    #expect(bench.send().count == 2)

    bench.machine.reload(bench.machine.registry, lanes: ["bus": (10, 1)], at: bench.now)

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
}

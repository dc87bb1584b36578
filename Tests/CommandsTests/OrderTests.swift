// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

/// Of two related changes nothing that the older one caused leaves after something that the newer
/// one caused, whatever waits.
@Suite struct OrderTests {
  /// How a newer position gets past its quiet period.
  enum Hurry: CaseIterable {
    case quiet, now, flush, none, close
  }

  private static func command(
    confirms: Bool = false,
    _ topic: String = "d/set"
  ) -> Property {
    .word("command", kind: .choice(["OPEN", "CLOSE", "STOP"])) { property in
      property.urgent = [.text("STOP")]
      property.ends = ["position"]
      property.command = CommandEndpoint(topic: topic, payload: PayloadTemplate("$value"))
      guard confirms else { return }
      property.state = StateSource(topic: "d/state", value: .whole)
      property.confirm = Confirmation(within: .seconds(2), retries: 2)
    }
  }

  private static func cover(confirms: Bool = false) -> [Property] {
    [command(confirms: confirms), .level("position")]
  }

  /// Lets the position of 10 leave, as far as it may.
  private func hurry(_ how: Hurry, _ bench: inout Bench) throws {
    try bench.set("position", 10, now: how == .now)
    switch how {
    case .quiet: bench.pass(300)
    case .none: bench.pass(0)
    case .now: break
    case .flush: bench.machine.flush(try bench.key("position"), at: bench.now)
    case .close: bench.machine.close(at: bench.now)
    }
  }

  @Test(arguments: Hurry.allCases)
  func `a position waits for an older stop that waits`(_ how: Hurry) throws {
    var cover = Self.cover()
    if how == .none { cover[1].policy = Policy(delay: .zero) }
    var bench = Bench([.of("d", cover)])
    try bench.set("command", .text("STOP"))
    let first = bench.publishes()
    #expect(first.count == 1)
    try bench.set("command", .text("STOP"))
    try hurry(how, &bench)
    #expect(bench.payloads() == [])
    let pending = PendingStatus(of: try bench.key("position"), in: bench.machine)
    #expect(pending?.waits == .lane)
    bench.finish(first)
    let second = bench.publishes()
    #expect(second.map(\.payload) == [Array("STOP".utf8)])
    bench.finish(second)
    #expect(bench.send() == ["10"])
    let isDrained = bench.isDrained
    #expect(isDrained)
  }

  @Test(arguments: [false, true])
  func `after a stop a position is sent, although it was reported before`(hasLeft: Bool) throws {
    var bench = Bench([.of("d", [Self.command(), .seen("position")])])
    try bench.report("position", 40)
    try bench.set("command", .text("STOP"))
    let first = bench.publishes()
    if hasLeft { bench.finish(first) } else { try bench.set("command", .text("STOP")) }
    try bench.set("position", 40, now: true)
    #expect(try bench.phase("position") == .accepted)
    if !hasLeft {
      bench.finish(first)
      bench.finish(bench.publishes())
    }
    #expect(bench.send() == ["40"])
    try bench.report("position", 40)
    bench.pass(60_000)
    try bench.set("position", 40, now: true)
    #expect(try bench.phase("position") == .unchanged)
  }

  @Test func `a stop that the connection lost leaves again before a newer position`() throws {
    var bench = Bench([.of("d", Self.cover())])
    try bench.set("command", .text("STOP"))
    let stop = bench.publishes()
    try bench.set("position", 10, now: true)
    #expect(bench.payloads() == [])
    bench.connect(false)
    bench.finish(stop, .lost)
    bench.connect(true)
    let again = bench.publishes()
    #expect(again.map(\.payload) == [Array("STOP".utf8)])
    bench.finish(again)
    #expect(bench.send() == ["10"])
  }

  @Test func `a stop that nothing confirmed is not repeated after a newer position`() throws {
    var bench = Bench([.of("d", Self.cover(confirms: true))])
    try bench.report("command", "OPEN")
    try bench.set("command", .text("STOP"))
    #expect(bench.send() == ["STOP"])
    try bench.set("position", 10, now: true)
    #expect(bench.send() == ["10"])
    _ = bench.told()
    bench.pass(2000)
    #expect(bench.send() == [])
    #expect(bench.told() == ["command failed STOP: not confirmed within 2s"])
  }

  @Test func `without a newer position it is repeated`() throws {
    var bench = Bench([.of("d", Self.cover(confirms: true))])
    try bench.report("command", "OPEN")
    try bench.set("command", .text("STOP"))
    bench.send()
    bench.pass(2000)
    try bench.set("position", 10, now: true)
    #expect(bench.send() == ["STOP"])
    #expect(bench.send() == ["10"])
  }

  @Test func `a stop that is cancelled, or expires, lets the position go`() throws {
    var bench = Bench([.of("d", Self.cover())])
    try bench.set("command", .text("STOP"))
    let first = bench.publishes()
    try bench.set("command", .text("STOP"))
    try bench.set("position", 10, now: true)
    bench.machine.cancel(try bench.key("command"), at: bench.now)
    #expect(bench.payloads() == [])
    bench.finish(first)
    #expect(bench.send() == ["10"])
  }

  @Test func `a stop does not take newer values of its device along`() throws {
    let topic = "d/set"
    func object(_ name: String) -> PayloadTemplate {
      PayloadTemplate(.object([.init(name, "$value")]))
    }
    var stop = Self.command(topic)
    stop.command.payload = object("state")
    let position = Property.level("position") {
      $0.command = CommandEndpoint(topic: topic, payload: object("position"))
    }
    var device = Device.of("d", [stop, position])
    device.merge = true
    var bench = Bench([device])
    try bench.set("command", .text("STOP"))
    let first = bench.publishes()
    try bench.set("command", .text("STOP"))
    try bench.set("position", 10, now: true)
    bench.finish(first)
    #expect(bench.send() == [#"{"state":"STOP"}"#])
    #expect(bench.send() == [#"{"position":10}"#])
  }

  @Test func `presses of one device leave in their order`() throws {
    func button(_ id: String) -> Property {
      .word(id, kind: .action(["press"]), delay: 0)
    }
    var bench = Bench([.of("d", [button("up"), button("down"), button("mute")])])
    try bench.set("up", .text("press"))
    let first = bench.publishes()
    for name in ["up", "down", "up", "mute"] { try bench.set(name, .text("press")) }
    #expect(bench.payloads() == [])
    bench.finish(first)
    var topics: [String] = []
    while true {
      let leaving = bench.publishes()
      if leaving.isEmpty { break }
      topics += leaving.map(\.topic)
      bench.finish(leaving)
    }
    #expect(topics == ["up/set", "down/set", "up/set", "mute/set"])
  }

  @Test func `a press does not wait for those of other devices, nor for an acknowledgement`() throws
  {
    func button(_ id: String) -> Property {
      .word(id, kind: .action(["press"]), delay: 0)
    }
    var bench = Bench([.of("d", [button("up"), button("down")]), .of("e", [button("other")])])
    try bench.set("up", .text("press"))
    let first = bench.publishes()
    try bench.set("up", .text("press"))
    try bench.set("e/other", .text("press"))
    #expect(bench.publishes().map(\.topic) == ["other/set"])
    bench.finish(first)
    try bench.set("down", .text("press"))
    #expect(bench.publishes().map(\.topic) == ["up/set", "down/set"])
  }
}

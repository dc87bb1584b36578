// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

/// What the reports of a device do to its targets and to the commands for it.
@Suite struct ReportTests {
  @Test func `a report on the way is interim and moves the actual value only`() throws {
    var bench = Bench(.seen())
    try bench.report("level", 10)
    try bench.set("level", 40, now: true)
    bench.send()
    for value in [10, 15, 39] as [JSONValue] { try bench.report("level", value) }
    #expect(try bench.actual("level") == 39)
    #expect(try bench.target("level") == 40)
    #expect(try bench.phase("level") == .sent)
  }

  @Test(arguments: [5, 41] as [JSONValue])
  func `any other report is a hand at the device`(reported: JSONValue) throws {
    var bench = Bench(.seen())
    try bench.report("level", 10)
    try bench.set("level", 40, now: true)
    bench.send()
    try bench.report("level", reported)
    #expect(bench.told().last == "level superseded 40: changed at the device")
    #expect(try bench.target("level") == bench.actual("level"))
    #expect(try bench.phase("level") == .superseded)
    #expect(bench.wait() == nil)
  }

  @Test func `the acknowledgement confirms only the word that is still shown`() throws {
    var bench = Bench(
      .word("mode") {
        $0.state = StateSource(topic: "mode/state", value: .whole)
        $0.confirm = Confirmation()
      }
    )
    try bench.report("mode", "off")
    try bench.set("mode", .text("heat"), now: true)
    let leaving = bench.publishes()
    for value in ["heat", "off"] as [JSONValue] { try bench.report("mode", value) }
    bench.finish(leaving)
    #expect(bench.told().last == "mode sent heat")
    try bench.report("mode", "heat")
    #expect(bench.told().last == "mode confirmed heat")
  }

  @Test func `the echo of an earlier command that was never confirmed is no hand`() throws {
    var bench = Bench(.seen())
    try bench.report("level", 10)
    try bench.set("level", 80, now: true)
    bench.send()
    try bench.set("level", 30, now: true)
    bench.send()
    try bench.report("level", 80)
    #expect(try bench.target("level") == 30)
    try bench.report("level", 30)
    #expect(bench.told().last == "level confirmed 30")
  }

  @Test func `with nothing in flight every report is target and actual`() throws {
    var bench = Bench(.seen())
    try bench.report("level", 10)
    #expect(try bench.target("level") == 10)
    try bench.report("level", 130)
    #expect(try bench.target("level") == 130)
    #expect(bench.told() == [])
  }

  @Test func `a value that somebody is still setting stays the target when a report comes`() throws
  {
    var bench = Bench(.seen())
    try bench.set("level", 40)
    try bench.report("level", 10)
    #expect(try bench.target("level") == 40)
    #expect(try bench.actual("level") == 10)
  }

  @Test func `an unreadable report changes nothing`() throws {
    var bench = Bench(.seen())
    try bench.report("level", 10)
    for wire in ["abc", nil, [1], true] as [JSONValue] { try bench.report("level", wire) }
    #expect(try bench.actual("level") == 10)
  }

  @Test func `the value the device shows is not sent again`() throws {
    var bench = Bench(.seen())
    try bench.report("level", 40)
    try bench.set("level", 40)
    bench.pass(300)
    #expect(bench.payloads() == [])
    let last = bench.dequeueEvents().last
    #expect(last?.phase == .unchanged)
    #expect(last?.isFinal == true)
    #expect(bench.machine.log.statistics.unchanged == 1)
  }

  @Test func `a value that came to be shown while it waited for its lane is not sent`() throws {
    var settings = CommandSettings()
    settings.lanes["bus"] = LaneLimits(rate: 1, burst: 1)
    var bench = Bench(
      [Device.of("d", lane: "bus", [.seen("a"), .seen("b")])],
      settings: settings
    )
    try bench.set("a", 1, now: true)
    try bench.set("b", 2, now: true)
    #expect(bench.payloads() == ["1"])
    try bench.report("b", 2)
    bench.pass(1000)
    #expect(bench.payloads() == [])
    #expect(bench.told().last == "b unchanged 2")
    #expect(bench.machine.log.statistics.published == 1)
  }

  @Test func `unchanged needs a device that is there, and is switched off by always`() throws {
    var bench = Bench([
      .of("d", [.seen("a"), .seen("b") { $0.always = true }]), .of("e", [.seen("a")]),
    ])
    for name in ["d/a", "d/b", "e/a"] { try bench.report(name, 40) }
    bench.online(false, device: 1)
    for name in ["d/a", "d/b", "e/a"] { try bench.set(name, 40, now: true) }
    #expect(bench.publishes().map(\.topic) == ["b/set"])
    #expect(
      PendingStatus(of: try bench.key("e/a"), in: bench.machine)?.waits == .offline
    )
  }

  @Test func `the old value is sent again while the new one may be under way`() throws {
    var bench = Bench(.seen())
    try bench.report("level", 10)
    try bench.set("level", 40, now: true)
    let leaving = bench.publishes()
    try bench.set("level", 10)
    bench.finish(leaving, .lost)
    bench.pass(300)
    #expect(bench.payloads() == ["10"])
  }

  @Test func `what waits with the device's value is dropped when the device's value is wanted`()
    throws
  {
    var settings = CommandSettings()
    settings.lanes["bus"] = LaneLimits(rate: 1, burst: 1)
    var bench = Bench(
      [Device.of("d", lane: "bus", [.seen("a"), .seen("b")])],
      settings: settings
    )
    try bench.report("b", 10)
    try bench.set("a", 1, now: true)
    bench.send()
    try bench.set("b", 20, now: true)
    try bench.set("b", 10, now: true)
    #expect(bench.told().suffix(2) == ["b superseded 20: newer value", "b unchanged 10"])
    #expect(bench.machine.pendingCount == 0)
    #expect(bench.machine.nextDeadline(after: bench.now) != nil)
    try bench.report("a", 1)
    bench.pass(5000)
    #expect(bench.wait() == nil)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

/// A device's own word that it has taken a value.
@Suite struct AcknowledgementTests {
  /// A level at 10 that was sent to 40 and has been acknowledged by the broker.
  private func sent() throws -> Bench {
    var bench = Bench(.seen())
    try bench.report("level", 10)
    try bench.set("level", 40, now: true)
    bench.send()
    _ = bench.told()
    return bench
  }

  @Test func `the device's word confirms before its state does`() throws {
    var bench = try sent()
    try bench.acknowledge("level", 40)
    #expect(bench.told() == ["level confirmed 40"])
    #expect(bench.wait() == nil)
    #expect(try bench.actual("level") == 10)
    #expect(try bench.target("level") == 40)
  }

  @Test func `what is reported on the way after that leaves the target alone`() throws {
    var bench = try sent()
    try bench.acknowledge("level", 40)
    for value in [10, 20, 39] as [JSONValue] { try bench.report("level", value) }
    #expect(try bench.target("level") == 40)
    #expect(try bench.actual("level") == 39)
    try bench.report("level", 40)
    #expect(try bench.target("level") == 40)
    bench.pass(5000)
    try bench.report("level", 30)
    #expect(try bench.target("level") == 30)
    #expect(bench.told() == ["level confirmed 40"])
  }

  @Test func `a report elsewhere after that is a hand at the device`() throws {
    var bench = try sent()
    try bench.acknowledge("level", 40)
    try bench.report("level", 5)
    #expect(try bench.target("level") == 5)
  }

  @Test func `a word about another value, or about nothing sent, is none`() throws {
    var bench = try sent()
    try bench.acknowledge("level", 41)
    #expect(bench.told() == [])
    #expect(bench.wait() == 5000)
    try bench.report("level", 40)
    _ = bench.told()
    try bench.acknowledge("level", 12)
    #expect(bench.told() == [])
    #expect(try bench.target("level") == 40)
  }

  @Test func `a word that outruns the broker's confirms after sent`() throws {
    var bench = Bench(.seen())
    try bench.report("level", 10)
    try bench.set("level", 40, now: true)
    let leaving = bench.publishes()
    try bench.acknowledge("level", 40)
    bench.finish(leaving)
    #expect(bench.told().suffix(2) == ["level sent 40", "level confirmed 40"])
    #expect(bench.wait() == nil)
  }

  @Test func `a reply confirms the message whose number it has, and no other`() throws {
    var bench = Bench(.numbered())
    try bench.set("level", 40, now: true)
    let text = try #require(bench.send().first)
    let number = try #require(Int64(text.drop { !$0.isNumber }.prefix { $0.isNumber }))
    _ = bench.told()
    try bench.reply("level", to: number + 1)
    #expect(bench.told() == [])
    try bench.reply("level", to: number)
    #expect(bench.told() == ["level confirmed 40"])
    #expect(try bench.target("level") == 40)
  }

  @Test func `a reply that refuses is a failure at once, and the target goes back`() throws {
    var bench = Bench(.numbered())
    try bench.report("level", 10)
    try bench.set("level", 40, now: true)
    let text = try #require(bench.send().first)
    let number = try #require(Int64(text.drop { !$0.isNumber }.prefix { $0.isNumber }))
    try bench.reply("level", to: number, problem: "no such light")
    #expect(bench.told().last == "level failed 40: the device refused: no such light")
    #expect(try bench.target("level") == 10)
    #expect(bench.wait() == nil)
  }

  @Test(arguments: [nil, "busy"] as [String?])
  func `a reply that outruns the broker's word counts after sent`(problem: String?) throws {
    var bench = Bench(.numbered())
    try bench.set("level", 40, now: true)
    let leaving = bench.publishes()
    let text = try #require(leaving.first.map { String(decoding: $0.payload, as: UTF8.self) })
    let number = try #require(Int64(text.drop { !$0.isNumber }.prefix { $0.isNumber }))
    try bench.reply("level", to: number, problem: problem)
    bench.finish(leaving)
    let end =
      problem == nil ? "level confirmed 40" : "level failed 40: the device refused: busy"
    #expect(bench.told().suffix(2) == ["level sent 40", end])
  }

  @Test func `numbers of messages begin where the settings say, and grow`() throws {
    var settings = CommandSettings()
    settings.firstMessage = 0x7FFF_FFFF
    let device = Device(id: "d", name: "D", properties: [.numbered()])
    var bench = Bench([device], settings: settings)
    try bench.set("level", 40, now: true)
    #expect(bench.send() == [#"{"id":0,"v":40}"#])
    try bench.set("level", 41, now: true)
    #expect(bench.send() == [#"{"id":1,"v":41}"#])
  }

  @Test func `an urgent value ends the way to what was acknowledged`() throws {
    var stop = Property.seen("stop")
    stop.urgent = [.number(1)]
    stop.ends = ["level"]
    var bench = Bench(.seen(), stop)
    try bench.report("level", 10)
    try bench.set("level", 40, now: true)
    bench.send()
    try bench.acknowledge("level", 40)
    try bench.report("level", 20)
    #expect(try bench.target("level") == 40)
    try bench.set("stop", 1)
    #expect(try bench.target("level") == 20)
    try bench.report("level", 25)
    #expect(try bench.target("level") == 25)
  }

  @Test func `a newer value takes over from one that was acknowledged and not shown`() throws {
    var bench = try sent()
    try bench.acknowledge("level", 40)
    try bench.step("level", 5)
    bench.pass(300)
    #expect(bench.send() == ["45"])
    try bench.report("level", 40)
    #expect(try bench.target("level") == 45)
    try bench.report("level", 45)
    #expect(bench.told().last == "level confirmed 45")
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Testing
import Values

@testable import Commands

/// What is known of a property that has not been reported, or was reported in a way that cannot be
/// read.
@Suite struct ReceptionTests {
  private static func isUnheard(_ bench: borrowing Bench, _ name: String) throws -> Bool {
    bench.machine.isUnheard(try bench.key(name))
  }

  private static func isUnheard(_ bench: borrowing Bench, device: Int) -> Bool {
    bench.machine.isUnheard(device: device)
  }

  private static func summary(_ bench: borrowing Bench) -> ReportSummary {
    ReportSummary(of: bench.machine)
  }

  private static func unreadable(
    _ bench: borrowing Bench,
    _ name: String = "level"
  ) throws -> UnreadableReports.Record? {
    bench.machine.unreadable[try bench.key(name)]
  }

  /// Sends 40 and lets five seconds pass without a report that can be read.
  private static func miss(_ bench: inout Bench, _ name: String = "level") throws {
    try bench.set(name, 40, now: true)
    bench.send()
    bench.pass(5000)
  }

  // MARK: - Unheard

  @Test(arguments: [40, "abc", nil, .object(["a": 1])] as [JSONValue])
  func `a property is unheard until its first report, whatever that says`(wire: JSONValue) throws {
    var bench = Bench(.seen())
    #expect(try Self.isUnheard(bench, "level") == true)
    bench.machine.log.statuses.changedKeys = []
    try bench.report("level", wire)
    #expect(try Self.isUnheard(bench, "level") == false)
    #expect(bench.machine.log.statuses.changedKeys == [.first])
  }

  @Test func `a property without a state topic, or with replies alone, is not unheard`() throws {
    let reply = StateSource(
      topic: "rpc",
      value: .whole,
      acknowledges: true,
      reply: ReplySource(id: .whole)
    )
    let target = StateSource(topic: "target", value: .whole, acknowledges: true)
    let bench = Bench(.level("a"), .level("b") { $0.states = [reply, target] })
    #expect(try Self.isUnheard(bench, "a") == false)
    #expect(try Self.isUnheard(bench, "b") == false)
    #expect(Self.isUnheard(bench, device: 0) == false)
  }

  @Test func `an acknowledgement is no report`() throws {
    var bench = Bench(.seen())
    try bench.set("level", 40, now: true)
    bench.send()
    try bench.acknowledge("level", 40)
    #expect(try Self.isUnheard(bench, "level") == true)
  }

  @Test func `a device is unheard until one of its properties is reported`() throws {
    var bench = Bench([.of("d", [.level("x"), .seen("a"), .seen("b")]), .of("e", [.seen("a")])])
    #expect(Self.summary(bench).unheardDevices == 2)
    try bench.report("d/b", 1)
    #expect(Self.isUnheard(bench, device: 0) == false)
    #expect(Self.isUnheard(bench, device: 1) == true)
    #expect(Self.summary(bench).unheardDevices == 1)
  }

  @Test func `a group is not unheard: its members report`() throws {
    var group = Device.of("g", [.seen("level")], hasAvailability: false)
    group.group = DeviceGroup(members: ["d"])
    let bench = Bench([.of("d", [.seen("level")]), group])
    #expect(Self.isUnheard(bench, device: 0) == true)
    #expect(Self.isUnheard(bench, device: 1) == false)
  }

  @Test func `an unheard property is missed after its first command that was not confirmed`() throws
  {
    var bench = Bench(.seen("a"), .seen("b"), .seen("c"))
    try bench.report("c", 1)
    for name in ["a", "c"] { try Self.miss(&bench, name) }
    #expect(Self.summary(bench).missed == [.first])
    try bench.report("a", 40)
    #expect(Self.summary(bench).missed == [])
  }

  @Test func `a property whose value another gateway says is heard`() throws {
    var bench = Bench(.seen("a"), .seen("b"))
    bench.machine.show(KeyStatus(target: 1, actual: 1), of: .first)
    bench.machine.show(KeyStatus(target: 1), of: .second)
    #expect(try Self.isUnheard(bench, "a") == false)
    #expect(try Self.isUnheard(bench, "b") == true)
    bench.machine.forget(.first, at: bench.now)
    #expect(try Self.isUnheard(bench, "a") == true)
  }

  // MARK: - Unreadable

  @Test func `reports that cannot be read are counted, with the newest`() throws {
    var bench = Bench(.seen("level"), .seen("other"))
    let key = try bench.key("level")
    #expect(bench.machine.reported(key, "abc", at: bench.now) == .unreadable(isFirst: true))
    #expect(bench.machine.reported(key, [1], at: bench.now) == .unreadable(isFirst: false))
    let text = JSONValue.string("\u{1B}[2J" + String(repeating: "x", count: 1000))
    let outcome = bench.machine.reportedUnreadable(key, text, at: bench.now)
    #expect(outcome == .unreadable(isFirst: false))
    let record = try #require(try Self.unreadable(bench))
    #expect(record.count == 3)
    #expect(record.excerpt.hasPrefix("'\\u{1b}[2Jxxx"))
    #expect(record.excerpt.utf8.count < 80)
    #expect(try Self.unreadable(bench, "other") == nil)
    #expect(bench.machine.unreadable.total == 3)
  }

  @Test func `null and the report of a button are no mistakes`() throws {
    var bench = Bench(
      .seen { $0.wire.reportedWords = ["none": [-1]] },
      .word("button", kind: .action(["PRESS"])) {
        $0.state = StateSource(topic: "button", value: .whole)
      }
    )
    for (name, wire) in [("level", nil), ("level", -1), ("button", "PRESS")]
      as [(String, JSONValue)]
    {
      #expect(bench.machine.reported(try bench.key(name), wire, at: bench.now) == .nothing)
      #expect(try Self.isUnheard(bench, name) == false)
    }
    #expect(bench.machine.unreadable.total == 0)
  }

  @Test func `a report that is read in two ways is no mistake where one fails`() throws {
    let member = StateSource(topic: "level/state", value: try #require(JSONPointer("/value")))
    var bench = Bench(.seen { $0.states.append(member) })
    let outcome = bench.machine.reportedUnreadable(.first, 40, at: bench.now)
    #expect(outcome == .nothing)
    try bench.report("level", .object(["value": 40]))
    #expect(bench.machine.unreadable.total == 0)
  }

  @Test func `a command that was not confirmed names the report that could not be read`() throws {
    var bench = Bench(.seen())
    try bench.report("level", "abc")
    try Self.miss(&bench)
    let reason = "not confirmed within 5s; the last report cannot be read: 'abc'"
    #expect(bench.told().last == "level failed 40: \(reason)")
    #expect(Self.summary(bench).unreadable == [.first])

    try bench.report("level", 1)
    try Self.miss(&bench)
    #expect(bench.told().last == "level failed 40: not confirmed within 5s")
    #expect(Self.summary(bench).unreadable == [])
    #expect(try Self.unreadable(bench)?.count == 1)
  }

  @Test func `so many properties have a record, and all are counted`() throws {
    let count = UnreadableReports.limit + 1
    var bench = Bench([.of("d", (0..<count).map { .seen("p\($0)") })])
    for place in 0..<count {
      let outcome = bench.machine.reported(KeyIndex(Int32(place)), "abc", at: bench.now)
      #expect(outcome == .unreadable(isFirst: place < count - 1))
    }
    #expect(bench.machine.unreadable.keys.count == count - 1)
    #expect(bench.machine.unreadable.total == UInt64(count))
    try Self.miss(&bench, "p\(count - 1)")
    #expect(bench.told().last?.hasSuffix("within 5s; the last report cannot be read") == true)
  }

  // MARK: - Reload

  @Test func `a reload keeps what was heard on the same topics alone`() throws {
    var bench = Bench([.of("d", [.seen("a"), .seen("b"), .seen("c"), .seen("gone")])])
    for name in ["a", "b", "c", "gone"] { try bench.report(name, 7) }
    let renamed = Property.seen("b") { $0.name = "B" }
    let moved = Property.seen("c") { $0.state = StateSource(topic: "elsewhere", value: .whole) }
    for properties in [[.seen("a"), renamed, moved], [.seen("a"), renamed, moved, .seen("gone")]] {
      let registry = Registry([.of("d", properties)], continuing: bench.machine.registry)
      bench.machine.reloadAtOnce(registry, at: bench.now)
    }
    let unheard = try ["a", "b", "c", "gone"].filter { try Self.isUnheard(bench, $0) }
    #expect(unheard == ["c", "gone"])
    try bench.report("c", 7)
    #expect(try Self.isUnheard(bench, "c") == false)
  }

  @Test func `a reload forgets what could not be read of a property that it changes`() throws {
    var bench = Bench([.of("d", [.seen("a"), .seen("b")])])
    for name in ["a", "b"] { try bench.report(name, "abc") }
    let text = Property.seen("a") { $0.kind = .text }
    let registry = Registry([.of("d", [text, .seen("b")])], continuing: bench.machine.registry)
    bench.machine.reloadAtOnce(registry, at: bench.now)
    #expect(try Self.unreadable(bench, "a") == nil)
    #expect(try Self.isUnheard(bench, "a") == false)
    #expect(try Self.unreadable(bench, "b")?.count == 1)
    #expect(Self.summary(bench).unreadable == [.second])
  }
}

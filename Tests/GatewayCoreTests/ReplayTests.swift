// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import JSON
import LastOut
import Testing
import Values

@testable import GatewayCore

/// What becomes of the values that an earlier process left.
@Suite struct ReplayTests {
  private static func entry(
    _ key: String,
    _ sequence: UInt64,
    _ value: JSONValue,
    boot: BootIdentifier = CoreBench.boot
  ) -> JournalEntry {
    var entry = JournalEntry(
      key: key,
      sequence: sequence,
      value: [],
      origin: .stored(
        JournalStamps(
          boot: boot,
          bootMilliseconds: 1000,
          wallMilliseconds: CoreBench.wallMilliseconds
        )
      ),
      ttl: .seconds(60)
    )
    entry.content = .unwritten(DurableValue(value: value, id: .string("id\(sequence)")))
    return entry
  }

  /// A core that starts with these values, after its first steps.
  private static func effects(of entries: [JournalEntry], steps: Int = 2) -> [String] {
    var bench = CoreBench(entries: entries)
    var effects: [String] = []
    for _ in 0..<steps { effects += bench.step() }
    return effects
  }

  @Test func `a stored value becomes a command, which is published`() {
    let effects = Self.effects(of: [Self.entry("blind/position", 1, .integer(40))])
    #expect(effects.contains("resumed blind/position"))
    #expect(effects.contains("publish position/set 40"))
    #expect(effects.contains("log resumed=1 expired=0 dropped=0"))
  }

  @Test(arguments: [
    ("blind/position", JSONValue.string("up"), "expected a number"),
    ("blind/button", .string("STOP"), "blind/button has taken its place"),
    ("blind/gone", .integer(1), "device 'blind' has no property 'gone'"),
  ])
  func `a value that its key does not accept is dropped, and the log says why`(
    key: String,
    value: JSONValue,
    reason: String
  ) {
    let effects = Self.effects(of: [Self.entry(key, 1, value)])
    #expect(effects.contains { $0.hasPrefix("log key=\(key)") && $0.contains(reason) })
    #expect(!effects.contains { $0.hasPrefix("publish") })
  }

  @Test func `256 values are handled at once, and the next step goes on without delay`() {
    let entries = (1...600).map { Self.entry("blind/gone\($0)", UInt64($0), .integer(1)) }
    var bench = CoreBench(entries: entries)
    _ = bench.step()  // Reads the clock.
    // A step handles what the journal reported at its beginning and after publishing.
    let counts = bench.step().filter { $0.hasPrefix("log resumed") }
    #expect(counts == Array(repeating: "log resumed=0 expired=0 dropped=256", count: 2))
    #expect(bench.core.nextDeadline(after: bench.now) == .zero)
    #expect(bench.step().contains("log resumed=0 expired=0 dropped=88"))
  }

  // MARK: - Newer commands

  /// A fan that stops was stored by an earlier boot, and waits for the clock to be synchronised.
  @Test func `a stored stop ends with a newer value, which it does not end`() throws {
    let boot = BootIdentifier(high: 1, low: 0)
    var bench = CoreBench(entries: [Self.entry("fan/speed", 5, .integer(0), boot: boot)])
    bench.isClockSynchronised = false
    _ = bench.step()
    try bench.set("fan/swing", .number(30), skipsQuiet: true)
    try #require(bench.step().contains("write"))
    bench.commitEnds()
    #expect(bench.published() == ["publish swing/set 30"])
    bench.acknowledge()
    bench.isClockSynchronised = true
    bench.pass(1000)
    let effects = bench.step() + bench.step()
    #expect(!effects.contains("resumed fan/speed"))
    #expect(!effects.contains("emit cancelled fan/swing"))
  }

  @Test func `a stored stop of a file that opens late ends with a newer value`() throws {
    var bench = CoreBench(fault: .readOnly)
    bench.core.connectionChanged(isUp: false, at: bench.now)
    try bench.set("fan/swing", .number(30), skipsQuiet: true)
    bench.fileOpens(with: [Self.entry("fan/speed", 5, .integer(0))])
    let effects = bench.step() + bench.step()
    #expect(!effects.contains("resumed fan/speed"))
    #expect(!effects.contains("emit cancelled fan/swing"))
  }

  @Test(arguments: [
    ("blind/button", Value.text("STOP"), "blind/position"),
    ("light/warmth", .number(20), "light/hue"),
  ])
  func `a file that opens late brings back nothing that a newer command ended`(
    newer: String,
    value: Value,
    stored: String
  ) throws {
    var bench = CoreBench(fault: .readOnly)
    _ = bench.step()
    try bench.set(newer, value, skipsQuiet: true)
    bench.fileOpens(with: [Self.entry(stored, 5, .integer(40))])
    let effects = bench.step() + bench.step()
    #expect(effects.contains("write"))
    #expect(!effects.contains("resumed \(stored)"))
  }

  @Test func `a value that waits when its file opens is sent once the older row is replaced`()
    throws
  {
    var bench = CoreBench(fault: .readOnly)
    bench.core.connectionChanged(isUp: false, at: bench.now)
    try bench.set("blind/position", .number(70), skipsQuiet: true)
    bench.fileOpens(with: [Self.entry("blind/position", 5, .integer(40))])
    #expect(bench.step().contains("write"))
    bench.connect()
    #expect(bench.published().isEmpty)
    bench.commitEnds()
    #expect(bench.published() == ["publish position/set 70"])
  }
}

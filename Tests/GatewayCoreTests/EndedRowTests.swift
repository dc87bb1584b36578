// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import GatewayCore
import LastOut
import Testing
import Values

/// A row on the disk that a command ends is removed before the command is published.
@Suite struct EndedRowTests {
  /// A bench with a durable position, a STOP accepted after it, and the removal being written.
  private static func benchWithStop() throws -> CoreBench {
    var bench = CoreBench()
    try bench.set("blind/position", .number(40))
    #expect(bench.step().contains("write"))
    bench.pass(10)
    bench.commitEnds()
    #expect(bench.step().contains("emit accepted blind/position"))
    try bench.set("blind/button", .text("STOP"))
    let effects = bench.step()
    #expect(effects.contains("write"))
    #expect(!effects.contains { $0.hasPrefix("publish") })
    return bench
  }

  @Test func `STOP is published once the row of the position is removed`() throws {
    var bench = try Self.benchWithStop()
    bench.pass(200)
    #expect(bench.published().isEmpty)
    bench.commitEnds()
    #expect(bench.published() == ["publish button/set STOP"])
  }

  @Test func `STOP waits 250 ms for a slow disk, then the log names the key`() throws {
    var bench = try Self.benchWithStop()
    bench.pass(249)
    #expect(bench.published().isEmpty)
    let end = bench.now.advanced(by: .milliseconds(1))
    #expect(bench.core.nextDeadline(after: bench.now) == end)
    bench.pass(1)
    let effects = bench.step()
    #expect(effects.contains("publish button/set STOP"))
    #expect(effects.contains("log keys=blind/position"))
  }

  @Test func `another STOP does not prolong the wait`() throws {
    var bench = try Self.benchWithStop()
    bench.pass(200)
    try bench.set("blind/button", .text("STOP"))
    #expect(bench.published().isEmpty)
    bench.pass(50)
    #expect(bench.published() == ["publish button/set STOP"])
  }

  @Test func `a value waits for the row of a property that it excludes, however long`() throws {
    var bench = CoreBench()
    try bench.set("light/warmth", .number(40))
    _ = bench.step()
    bench.commitEnds()
    _ = bench.step()
    bench.pass(10)
    try bench.set("light/hue", .number(7), skipsQuiet: true)
    #expect(bench.published().isEmpty)
    bench.pass(5000)
    #expect(bench.published().isEmpty)
    bench.commitEnds()
    #expect(bench.published() == ["publish hue/set 7"])
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut
import Testing
import Values

/// A change that a person made keeps other sources away for a time.
@Suite struct HandHoldTests {
  private static let panel = ChangeOrigin(source: "panel")
  private static let rule = ChangeOrigin(source: "rule")

  private static func held(_ adjust: (inout Property) -> Void = { _ in }) -> Property {
    .level { property in
      property.hold = HoldRule(duration: .seconds(900), hands: ["panel", "cli", "knob-*"])
      adjust(&property)
    }
  }

  @Test(arguments: [
    ("rule", true), ("mqtt", true), ("panel", false), ("cli", false), ("knob-hall", false),
    ("knob", true),
  ])
  func `after a person's change only people change the property`(
    source: String,
    isRejected: Bool
  ) throws {
    var bench = Bench(Self.held())
    try bench.set("level", .number(10), origin: Self.panel)
    var error: ValidationError?
    do throws(ValidationError) {
      let key = KeyIndex(0)
      let options = ChangeOptions(origin: ChangeOrigin(source: source))
      try bench.machine.change(.set(.number(90)), of: key, at: bench.now, options)
    } catch let thrown {
      error = thrown
    }
    #expect(error == (isRejected ? .held(by: "panel") : nil))
    #expect(error?.description == (isRejected ? "held by panel" : nil))
    #expect(try bench.target("level") == .number(isRejected ? 10 : 90))
  }

  @Test func `a plain message has the source mqtt`() throws {
    var bench = Bench(Self.held())
    try bench.set("level", .number(10), origin: Self.panel)
    #expect(throws: ValidationError.held(by: "panel")) { try bench.set("level", .number(90)) }
    #expect(throws: ValidationError.held(by: "panel")) { try bench.step("level", 1) }
  }

  @Test func `automation alone holds nothing`() throws {
    var bench = Bench(Self.held())
    try bench.set("level", .number(10), origin: Self.rule)
    try bench.set("level", .number(20))
    #expect(try bench.target("level") == .number(20))
  }

  @Test func `the hold ends with its time, and each change of a person renews it`() throws {
    var bench = Bench(Self.held())
    try bench.set("level", .number(10), origin: Self.panel)
    bench.pass(899_999)
    try bench.step("level", 1, origin: ChangeOrigin(source: "cli"))
    bench.pass(899_999)
    #expect(throws: ValidationError.held(by: "cli")) { try bench.set("level", .number(90)) }
    bench.pass(1)
    try bench.set("level", .number(90))
    #expect(try bench.target("level") == .number(90))
  }

  @Test func `a person's change that is rejected holds nothing`() throws {
    var bench = Bench(Self.held())
    #expect(throws: ValidationError.noBase) { try bench.step("level", 1, origin: Self.panel) }
    try bench.set("level", .number(90))
    #expect(try bench.target("level") == .number(90))
  }

  @Test func `an urgent value is never held`() throws {
    var bench = Bench(Self.held { $0.urgent = [.number(0)] })
    try bench.set("level", .number(10), origin: Self.panel)
    try bench.set("level", .number(0), origin: Self.rule)
    #expect(try bench.target("level") == .number(0))
  }

  @Test func `other properties are not held`() throws {
    var bench = Bench(Self.held(), .level("other"))
    try bench.set("level", .number(10), origin: Self.panel)
    try bench.set("other", .number(10), origin: Self.rule)
    #expect(try bench.target("other") == .number(10))
  }

  @Test(arguments: [true, false])
  func `a reload keeps the hold where the property keeps its own`(keeps: Bool) throws {
    var bench = Bench(Self.held())
    try bench.set("level", .number(10), origin: Self.panel)
    let device = Device(
      id: "d",
      name: "D",
      properties: [keeps ? Self.held { $0.always = true } : .level()]
    )
    bench.machine.beginReload(Registry([device], continuing: bench.machine.registry))
    while bench.machine.isReloading {
      _ = bench.machine.continueReload(keys: 10, at: bench.now)
    }
    #expect(
      bench.machine.holds.holder(of: KeyIndex(0), at: bench.now)?.source == (keeps ? "panel" : nil)
    )
    if keeps {
      #expect(throws: ValidationError.held(by: "panel")) { try bench.set("level", .number(90)) }
    } else {
      try bench.set("level", .number(90))
    }
  }
}

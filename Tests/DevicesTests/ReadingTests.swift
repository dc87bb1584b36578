// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Testing
import Values

struct ReadingTests {
  @Test(arguments: [
    ("40", "40"), ("40.0", "40"), ("007", "7"), (" 12 \n", "12"), ("1e1", "10"),
    ("0", "0"), ("100", "100"), ("-0", "0"), ("99.99", "99.99"),
    ("100.1", "100.1 is outside 0 to 100"), ("-1", "-1 is outside 0 to 100"),
    ("21,5", "found '21,5', expected a number; did you mean '21.5'?"),
    ("1,000,000", "found '1,000,000', expected a number"),
    ("nan", "found 'nan', expected a number"), ("inf", "found 'inf', expected a number"),
    ("0x10", "found '0x10', expected a number"), ("1e999", "found '1e999', expected a number"),
    ("", "found '', expected a number"), ("-", "found '-', expected a number"),
    (".", "found '.', expected a number"), ("4 0", "found '4 0', expected a number"),
    ("1e", "found '1e', expected a number"), ("--1", "found '--1', expected a number"),
    ("a\u{1B}[31mb", "found 'a\\u{1b}[31mb', expected a number"),
  ])
  func `numbers need a decimal point, and are finite and in range`(text: String, result: String) {
    let property = Property.number(0...100)
    #expect(property.reading(text) == result)
    #expect(property.readingPayload(text) == result)
  }

  @Test(arguments: [
    (ValueKind.number(NumberRule(range: -10...10)), "-5", "-5"),
    (.integer(NumberRule()), "-5", "-5"),
    (.number(NumberRule()), "+5", step("5")), (.integer(NumberRule()), " +5 ", step("5")),
    (.number(NumberRule()), "+0.5", step("0.5")),
    (
      .number(NumberRule(range: 0...9, unit: "V")), "+5 V",
      "+5 V is a step: use step, or write 5 V"
    ),
    (.text, "+49170", "+49170"), (.choice(["+1", "-1"]), "+1", "+1"),
    (.boolean, "+1", "found '+1', expected true or false, on or off, 1 or 0"),
  ])
  func `a number with a plus sign is a step, and a text keeps the sign`(
    kind: ValueKind,
    text: String,
    result: String
  ) {
    #expect(Property.of(kind).reading(text) == result)
    #expect(Property.of(kind).readingPayload(text) == result)
    #expect(Property.of(kind).reading(JSONValue.string(text)) == result)
  }

  private static func step(_ number: String) -> String {
    "+\(number) is a step: use step (settle step KEY +\(number)), or write \(number)"
  }

  @Test(arguments: [
    ValueKind.number(NumberRule()), .integer(NumberRule(range: 0...9, step: 1)), .boolean, .text,
    .color, .choice(["1"]),
  ])
  func `a read-only property has no values to set`(kind: ValueKind) throws {
    let property = Property(readOnly: "p", kind: kind)
    let refusal = "'p' is read-only: only the device changes it"
    #expect(property.reading("1") == refusal)
    #expect(property.reading(JSONValue.integer(1)) == refusal)
    #expect(property.readingPayload("1") == refusal)
    #expect(throws: ValidationError.unsupported(refusal)) {
      try property.stepped(from: .number(1), by: 1)
    }
    #expect(throws: ValidationError.unsupported(refusal)) {
      try property.toggled(from: .boolean(true))
    }
    let registry = Registry([Device(id: "d", name: "D", properties: [property])])
    let key = try registry.index(of: "d/p")
    #expect(throws: ValidationError.unsupported(refusal)) { try registry.value(from: 1, of: key) }
    let bytes = Array("1".utf8)
    #expect(throws: ValidationError.unsupported(refusal)) {
      try registry.value(fromPayload: bytes.span, of: key)
    }
  }

  @Test(arguments: [
    ("5", "5"), ("5.2", "5"), ("5.25", "5.5"), ("5.3", "5.5"), ("20.7", "20.5"), ("29.9", "30"),
    ("30", "30"),
  ])
  func `numbers are snapped to the step`(text: String, result: String) {
    #expect(Property.number(5...30, step: 0.5).reading(text) == result)
  }

  @Test(arguments: [
    (-10.0, 10.0, 1.0, -2.5, -3.0),  // a tie goes away from zero
    (-10, 10, 1, 2.5, 3),
    (1, 10, 2, 4, 5),  // counted from the lower bound: 1, 3, 5
    (0, 10, 4, 10, 8),  // the last point within the range
    (0, 1, 0.1, 0.3, 0.3),  // no rounding error
    (0, 100, 0.1, 20.65, 20.7),
    (0.05, 1, 0.1, 0.31, 0.35),
    (0, 1e-6, 1e-9, 3.2e-9, 3e-9),  // a step of any size
    (0, 1_000_000, 0.01, 123_456.785, 123_456.79),
  ])
  func `snapping counts from the lower bound`(
    low: Double,
    high: Double,
    step: Double,
    given: Double,
    result: Double
  ) {
    #expect(NumberRule(range: low...high, step: step).snapped(given) == result)
  }

  @Test(arguments: [
    ("40", "40"), ("40.0", "40"), ("40.5", "found 40.5, expected a whole number"),
    ("x", "found 'x', expected a whole number"),
    ("1e300", "found 1e+300, expected a whole number"),
  ])
  func `an integer has no fraction`(text: String, result: String) {
    #expect(Property.of(.integer(NumberRule())).reading(text) == result)
    #expect(Property.of(.integer(NumberRule())).readingPayload(text) == result)
  }

  @Test(arguments: [
    ("true", "true"), ("TRUE", "true"), ("on", "true"), ("On", "true"), ("1", "true"),
    ("false", "false"), ("OFF", "false"), ("0", "false"), (" on\n", "true"),
    ("2", "found '2', expected true or false, on or off, 1 or 0"),
    ("yes", "found 'yes', expected true or false, on or off, 1 or 0"),
    ("fasle", "found 'fasle', expected true or false, on or off, 1 or 0; did you mean 'false'?"),
  ])
  func `booleans ignore case`(text: String, result: String) {
    #expect(Property.of(.boolean).reading(text) == result)
    #expect(Property.of(.boolean).readingPayload(text) == result)
  }

  @Test(arguments: [
    ("heat", "heat"), ("off", "off"), (" heat ", "heat"),
    ("Heat", "found 'Heat', allowed: off, heat, auto; did you mean 'heat'?"),
    ("haet", "found 'haet', allowed: off, heat, auto; did you mean 'heat'?"),
    ("cold", "found 'cold', allowed: off, heat, auto"),
  ])
  func `a choice is one of its words`(text: String, result: String) {
    let property = Property.of(.choice(["off", "heat", "auto"]))
    #expect(property.reading(text) == result)
    #expect(property.readingPayload(text) == result)
  }

  @Test(arguments: [
    ("#ff8800", "#ff8800"), ("#FF8800", "#ff8800"),
    ("ff8800", "found 'ff8800', expected \(Color.forms); did you mean '#ff8800'?"),
    ("#ff88", "found '#ff88', expected \(Color.forms)"),
    ("rad", "found 'rad', expected \(Color.forms); did you mean 'red'?"),
    ("xylophone", "found 'xylophone', expected \(Color.forms)"),
  ])
  func `a color as text is six hexadecimal digits`(text: String, result: String) {
    #expect(Property.of(.color).reading(text) == result)
  }

  @Test(
    arguments: [
      (.object(["r": 255, "g": 136, "b": 0]), "#ff8800"),
      (.object(["x": 0.3, "y": 0.4]), #"{"x":0.3,"y":0.4}"#),
      (.object(["h": 30, "s": 100]), #"{"h":30,"s":100}"#),
      (
        .object(["h": 361, "s": 100]),
        #"found {"h":361,"s":100}, expected \#(Color.forms)"#
      ),
      (
        .object(["r": 256, "g": 0, "b": 0]),
        #"found {"r":256,"g":0,"b":0}, expected \#(Color.forms)"#
      ),
      (.object(["x": 0.3]), #"found {"x":0.3}, expected \#(Color.forms)"#),
    ] as [(JSONValue, String)]
  )
  func `a color as JSON has the members of one form`(json: JSONValue, result: String) {
    #expect(Property.of(.color).reading(json) == result)
  }

  @Test(
    arguments: [
      (.number(NumberRule()), .boolean(true), "found true, expected a number"),
      (.number(NumberRule()), .null, "found null, expected a number"),
      (.number(NumberRule()), .object([]), "found an object, expected a number"),
      (.boolean, .array([]), "found an array, expected true or false, on or off, 1 or 0"),
      (.boolean, 1, "true"),
      (.text, 40, "40"),
      (.text, .null, "found null, expected text"),
      (.action(["STOP"]), "stop", "found 'stop', allowed: STOP; did you mean 'STOP'?"),
      (.action([]), "press", "press"),
      (.number(NumberRule()), .number(.nan), "found nan, expected a finite number"),
    ] as [(ValueKind, JSONValue, String)]
  )
  func `JSON of another type is rejected`(kind: ValueKind, json: JSONValue, result: String) {
    #expect(Property.of(kind).reading(json) == result)
  }

  @Test func `bytes that are not UTF-8 are rejected`() {
    let bytes: [UInt8] = [0x61, 0xFF]
    #expect(throws: ValidationError.self) {
      _ = try Property.of(.text).value(fromPayload: bytes.span)
    }
  }

  @Test func `messages truncate long input`() {
    let text = Property.number().reading(String(repeating: "x", count: 10_000))
    #expect(text.utf8.count < 200)
  }

  @Test(arguments: [
    (20.0, 0.5, "20.5"), (20, 100, "30"), (20, -100, "5"), (20, 0.1, "20"), (20.3, 0.5, "21"),
  ])
  func `a step is clamped and snapped`(base: Double, amount: Double, result: String) throws {
    let property = Property.number(5...30, step: 0.5)
    #expect(try property.stepped(from: .number(base), by: amount).bareText == result)
  }

  @Test func `step and toggle are rejected for types without them`() throws {
    #expect(throws: ValidationError.unsupported("step needs a number; 'p' is of type boolean")) {
      _ = try Property.of(.boolean).stepped(from: .boolean(true), by: 1)
    }
    #expect(throws: ValidationError.unsupported("toggle needs a boolean; 'p' is of type color")) {
      _ = try Property.of(.color).toggled(from: .boolean(true))
    }
    #expect(throws: ValidationError.self) {
      _ = try Property.number().stepped(from: .number(1), by: .infinity)
    }
    #expect(throws: ValidationError.self) {
      _ = try Property.of(.integer(NumberRule())).stepped(from: .number(1), by: 0.5)
    }
    #expect(try Property.of(.boolean).toggled(from: .boolean(true)) == .boolean(false))
  }
}

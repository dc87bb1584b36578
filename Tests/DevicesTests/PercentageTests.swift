// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import Testing
import Values

/// Percentages and color words, as people type them.
struct PercentageTests {
  private static let lamp = ValueKind.integer(NumberRule(range: 0...254, step: 1))
  private static let boiler = ValueKind.number(NumberRule(range: 5...30, step: 0.5, unit: "°C"))
  private static let blind = ValueKind.integer(NumberRule(range: 0...100, step: 1, unit: "%"))
  private static let half = ValueKind.number(NumberRule(range: 0...50, unit: "%"))
  private static let free = ValueKind.number(NumberRule(unit: "W"))

  private func reading(_ text: String, _ kind: ValueKind) -> String {
    do throws(ValidationError) {
      return try kind.value(from: .string(text)).bareText
    } catch {
      return error.description
    }
  }

  @Test(
    arguments: [
      (lamp, "50%", "127"), (lamp, "0%", "0"), (lamp, "100 %", "254"), (lamp, " 33.3% ", "85"),
      (boiler, "50%", "17.5"), (boiler, "1%", "5.5"), (boiler, "100%", "30"),
      (lamp, "101%", "101% is outside 0% to 100%"),
      (lamp, "+10%", "+10% is a step: use step (settle step KEY +10%), or write 10%"),
      (lamp, "-10%", "-10% is a step: use step (settle step KEY -10%), or write 10%"),
      (lamp, "%", "found '%', expected a whole number"),
      (lamp, "5%%", "found '5%%', expected a whole number"),
      (
        free, "50%", "a percentage is of a range, and the property has none; give a number"
      ),
    ] as [(ValueKind, String, String)]
  )
  func `a percentage is a part of the range`(kind: ValueKind, text: String, result: String) {
    #expect(reading(text, kind) == result)
  }

  @Test(
    arguments: [
      (blind, "50%", "50"), (half, "50%", "50"), (half, "20.5%", "20.5"),
      (half, "60%", "60 is outside 0 to 50 %"),
    ] as [(ValueKind, String, String)]
  )
  func `where the unit is percent it is that number`(
    kind: ValueKind,
    text: String,
    result: String
  ) {
    #expect(reading(text, kind) == result)
  }

  @Test(
    arguments: [
      (lamp, "+10%", 25), (lamp, "-10%", -25), (lamp, "10%", 25), (lamp, "+0.1%", 1),
      (lamp, "0%", 0), (boiler, "-10%", -2.5), (boiler, "+1%", 0.5), (blind, "+10%", 10),
      (half, "+10%", 10),
    ] as [(ValueKind, String, Double)]
  )
  func `a step by a percentage adds whole steps`(
    kind: ValueKind,
    text: String,
    amount: Double
  ) throws {
    let step = try #require(StepAmount(percentage: text))
    #expect(try step.number(for: kind) == amount)
  }

  @Test func `a step by a percentage needs a range`() throws {
    let step = try #require(StepAmount(percentage: "10%"))
    #expect(throws: ValidationError.self) { try step.number(for: Self.free) }
    #expect(StepAmount(percentage: "10") == nil)
    #expect(StepAmount(percentage: "x%") == nil)
    #expect(step.json == "+10%")
  }

  @Test(arguments: [
    ("red", "#ff0000"), ("DarkOrange", "#ff8c00"), (" teal ", "#008080"), ("black", "#000000"),
    ("rebeccapurple", "#663399"), ("yellowgreen", "#9acd32"), ("#FF8800", "#ff8800"),
  ])
  func `a color word is that color`(text: String, result: String) {
    #expect(reading(text, .color) == result)
  }

  @Test(arguments: [
    (Color.rgb(red: 1, green: 2, blue: 255), "#0102ff"), (.hs(hue: 30, saturation: 100), "#ff8000"),
  ])
  func `every color has a hexadecimal text`(color: Color, text: String) {
    #expect(color.hexText == text)
  }
}

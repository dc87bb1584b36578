// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Testing
import Values

/// Numbers that people read and type in another unit than the property's.
struct DisplayTests {
  private static func kind(
    _ range: ClosedRange<Double>?,
    step: Double? = 1,
    unit: String? = nil,
    _ display: Display
  ) -> ValueKind {
    var rule = NumberRule(range: range, step: step, unit: unit)
    rule.display = display
    return step == 1 ? .integer(rule) : .number(rule)
  }

  private static let percent = Display(
    unit: "%",
    scale: .linear(from: .init(0, 254), to: .init(0, 100), decimals: 0)
  )
  private static let kelvin = Display(unit: "K", scale: .mired)
  private static let lamp = kind(0...254, percent)
  private static let dimmest = kind(1...254, percent)
  private static let white = kind(150...500, unit: "mired", kelvin)
  private static let blind = kind(
    0...100,
    unit: "%",
    Display(unit: "% closed", scale: .linear(from: .init(0, 100), to: .init(100, 0), decimals: 0))
  )
  private static let heat = kind(
    5...30,
    step: 0.5,
    unit: "°C",
    Display(unit: "°F", scale: .linear(from: .init(0, 100), to: .init(32, 212), decimals: 1))
  )

  @Test(
    arguments: [
      (lamp, "40%", "102"), (lamp, "100 %", "254"), (lamp, "0.2%", "1"), (lamp, "40", "40"),
      (dimmest, "50%", "127"), (dimmest, "0%", "1"), (white, "4000K", "250"),
      (white, " 4000 k ", "250"), (white, "6667K", "150"), (white, "2000K", "500"),
      (white, "250", "250"), (white, "250 mired", "250"), (white, "50%", "325"),
      (heat, "70°F", "21"), (heat, "21.5 °C", "21.5"), (heat, "50%", "17.5"),
      (blind, "25% closed", "75"), (blind, "25%", "25"),
      (white, "7000K", "7000 K is outside 2000 to 6667 K"),
      (white, "0K", "0 K is outside 2000 to 6667 K"), (lamp, "101%", "101 % is outside 0 to 100 %"),
      (white, "4000W", "found '4000W', expected a whole number"),
      (white, "K", "found 'K', expected a whole number"),
      (
        white, "4000",
        "4000 is outside 150 to 500 mired, which is 2000 to 6667 K; type 4000K for 250 mired"
      ), (white, "9000", "9000 is outside 150 to 500 mired, which is 2000 to 6667 K"),
      (lamp, "300", "300 is outside 0 to 254"),
      (heat, "70", "70 is outside 5 to 30 °C, which is 41 to 86 °F; type 70°F for 21 °C"),
      (white, "+4000K", "+4000K is a step: use step, or write 4000K"),
      (lamp, "+5%", "+5% is a step: use step (settle step KEY +5%), or write 5%"),
    ] as [(ValueKind, String, String)]
  )
  func `only a written unit converts`(kind: ValueKind, text: String, result: String) {
    #expect(Property.of(kind).reading(text) == result)
    #expect(Property.of(kind).readingPayload(text) == result)
  }

  @Test(
    arguments: [
      (lamp, "+10%", 25), (lamp, "-0.1%", -1), (blind, "+10%", 10), (white, "+10%", 35),
    ] as [(ValueKind, String, Double)]
  )
  func `a step by a percentage is of what people read in percent, else of the range`(
    kind: ValueKind,
    text: String,
    amount: Double
  ) throws {
    let step = try #require(StepAmount(percentage: text))
    #expect(try step.number(for: kind) == amount)
  }

  @Test(
    arguments: [
      (lamp, 102, "40 %"), (lamp, 0, "0 %"), (lamp, 1, "0 %"), (white, 250, "4000 K"),
      (white, 0, "0 mired"), (heat, 21, "69.8 °F"), (blind, 75, "25 % closed"),
    ] as [(ValueKind, Double, String)]
  )
  func `numbers are shown in the unit that people read`(
    kind: ValueKind,
    number: Double,
    shown: String
  ) throws {
    let (found, unit) = try #require(kind.numberRule).shown(number)
    #expect("\(NumberText.shortest(found)) \(unit ?? "")" == shown)
  }

  @Test(arguments: [percent, kelvin])
  func `it survives JSON`(display: Display) {
    #expect(Display(display.json) == display)
    #expect(Display(nil) == nil && Display(.object(["unit": "%"])) == nil)
    let flat = JSONValue.object(["from": [1, 1], "to": [0, 1], "decimals": 0])
    #expect(Display(.object(["unit": "%", "scale": flat])) == nil)
  }

  @Test func `the wire never changes`() {
    let property = Property.of(Self.white)
    #expect(property.wireValue(of: .number(250)) == 250)
    #expect(property.value(fromWire: 250) == .number(250))
  }
}

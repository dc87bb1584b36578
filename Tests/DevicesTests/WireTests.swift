// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Testing
import Values

struct WireTests {
  private static let percent = Scale.linear(
    from: .init(0, 100),
    to: .init(0, 254),
    decimals: 0
  )

  @Test(arguments: [(0.0, 0.0), (50, 127), (100, 254), (1, 3), (33, 84)])
  func `a scale rounds the wire value`(value: Double, wire: Double) {
    let property = Property.number(0...100, step: 1, scale: Self.percent)
    #expect(property.wireValue(of: .number(value)) == JSONValue(shortest: wire))
  }

  @Test func `every step survives the conversion to the wire and back`() {
    let property = Property.number(0...100, step: 1, scale: Self.percent)
    for step in 0...100 {
      let value = Value.number(Double(step))
      #expect(property.value(fromWire: property.wireValue(of: value)) == value)
      #expect(property.isShown(value, by: property.wireValue(of: value)))
    }
  }

  @Test func `a reversed scale works`() {
    let scale = Scale.linear(from: .init(0, 100), to: .init(255, 0), decimals: 0)
    let property = Property.number(0...100, scale: scale)
    #expect(property.wireValue(of: .number(0)) == 255)
    #expect(property.value(fromWire: 255) == .number(0))
  }

  @Test(arguments: [(2000.0, 500), (2700, 370), (6500, 154)] as [(Double, JSONValue)])
  func `kelvin is sent as mired`(kelvin: Double, mired: JSONValue) {
    let property = Property.number(2000...6500, step: 50, scale: .mired)
    #expect(property.wireValue(of: .number(kelvin)) == mired)
    #expect(property.isShown(.number(kelvin), by: mired))
  }

  @Test(
    arguments: [
      (40.0, 40, true), (40, 40.5, true), (40, 41, false), (40, "40", true), (40, true, false),
      (40, .null, false), (40, "x", false),
    ] as [(Double, JSONValue, Bool)]
  )
  func `a report within half a step confirms a number`(
    value: Double,
    reported: JSONValue,
    isShown: Bool
  ) {
    let property = Property.number(0...100, step: 1)
    #expect(property.isShown(.number(value), by: reported) == isShown)
  }

  @Test func `a stated tolerance includes its bounds`() {
    var property = Property.number(5...30, step: 0.5)
    property.confirm = Confirmation(tolerance: 0.1)
    #expect(property.isShown(.number(20), by: 20.1))
    #expect(!property.isShown(.number(20), by: 20.2))
  }

  @Test func `a color's tolerance may be any number`() {
    var property = Property.color(.rgb)
    let orange = Value.color(.rgb(red: 255, green: 136, blue: 0))
    let near: JSONValue = .object(["r": 250, "g": 140, "b": 0])
    property.confirm = Confirmation(tolerance: 4)
    #expect(!property.isShown(orange, by: near))
    property.confirm = Confirmation(tolerance: 5)
    #expect(property.isShown(orange, by: near))
    property.confirm = Confirmation(tolerance: 1e300)
    #expect(property.isShown(orange, by: near))
  }

  @Test func `whole numbers are sent without a fraction`() {
    for number in [0, 1e15, 0x1p53, -0x1p53] as [Double] {
      let wire = Property.number(-0x1p53...0x1p53, step: 1).wireValue(of: .number(number))
      #expect(wire == .integer(Int64(number)))
      #expect(NumberText.shortest(number) == "\(Int64(number))")
    }
  }

  @Test func `a report may be out of range or between steps`() {
    let property = Property.number(5...30, step: 0.5)
    #expect(property.value(fromWire: 20.3) == .number(20.3))
    #expect(property.value(fromWire: 35) == .number(35))
    #expect(property.value(fromWire: "21.5") == .number(21.5))
    #expect(property.value(fromWire: .object([])) == nil)
  }

  @Test func `booleans are sent as JSON unless words are given`() {
    var wire = WireRule()
    let plain = Property.of(.boolean)
    #expect(plain.wireValue(of: .boolean(true)) == true)
    wire.on = "ON"
    wire.off = "OFF"
    let worded = Property.of(.boolean, wire: wire)
    #expect(worded.wireValue(of: .boolean(false)) == "OFF")
    #expect(worded.value(fromWire: "on") == .boolean(true))
    #expect(worded.value(fromWire: false) == .boolean(false))
    #expect(worded.value(fromWire: "unknown") == nil)
    #expect(worded.isShown(.boolean(true), by: "ON"))
    #expect(!worded.isShown(.boolean(true), by: "OFF"))
  }

  @Test func `the words of a choice can have other wire values`() {
    var wire = WireRule()
    wire.words = ["off": 0, "heat": 1]
    let property = Property.of(.choice(["off", "heat", "auto"]), wire: wire)
    #expect(property.wireValue(of: .text("heat")) == 1)
    #expect(property.wireValue(of: .text("auto")) == "auto")
    #expect(property.value(fromWire: 0) == .text("off"))
    #expect(property.value(fromWire: "1") == .text("heat"))
    #expect(property.value(fromWire: 7) == nil)
    #expect(property.isShown(.text("heat"), by: 1))
  }

  @Test(
    arguments: [
      (.rgb, .object(["r": 255, "g": 136, "b": 0])),
      (.hex, "#ff8800"),
      (.hsb, "32,100,100"),
      (.hs, .object(["h": 32, "s": 100])),
      (.commaHS, "32,100"),
      (.commaRGB, "255,136,0"),
      (.homie, "rgb,255,136,0"),
      (.homieHSV, "hsv,32,100,100"),
      (.channels, .array([255, 136, 0])),
    ] as [(ColorEncoding, JSONValue)]
  )
  func `a color survives its encoding`(
    encoding: ColorEncoding,
    wire: JSONValue
  ) {
    let property = Property.color(encoding)
    let orange = Value.color(.rgb(red: 255, green: 136, blue: 0))
    #expect(property.wireValue(of: orange) == wire)
    #expect(property.isShown(orange, by: wire))
  }

  @Test func `a boolean may be reported in other words than those of commands`() {
    var property = Property.of(.boolean)
    property.wire.on = "LOCK"
    property.wire.off = "UNLOCK"
    property.wire.reportedOn = "LOCKED"
    property.wire.reportedOff = "UNLOCKED"
    #expect(property.wireValue(of: .boolean(true)) == "LOCK")
    #expect(property.value(fromWire: "LOCKED") == .boolean(true))
    #expect(property.value(fromWire: "UNLOCKED") == .boolean(false))
    #expect(property.value(fromWire: "LOCKING") == nil)
    #expect(property.isShown(.boolean(false), by: "UNLOCKED"))
  }

  @Test func `a word may be reported in several ways`() {
    var property = Property.of(.choice(["auto", "heat", "off"]))
    property.wire.reportedWords = ["heat": ["manual", 1], "off": ["night"]]
    #expect(property.wireValue(of: .text("heat")) == "heat")
    #expect(property.value(fromWire: "manual") == .text("heat"))
    #expect(property.value(fromWire: "1") == .text("heat"))
    #expect(property.value(fromWire: "night") == .text("off"))
    #expect(property.value(fromWire: "auto") == .text("auto"))
    #expect(property.value(fromWire: "dusk") == nil)
    #expect(property.isShown(.text("off"), by: "night"))
  }

  @Test func `a color may be reported in another form than that of commands`() {
    var property = Property.color(.commaRGB)
    property.wire.decoding = .commaHS
    let orange = Value.color(.rgb(red: 128, green: 68, blue: 0))
    #expect(property.wireValue(of: orange) == "128,68,0")
    #expect(property.isShown(orange, by: "32,100,40"))
    #expect(!property.isShown(orange, by: "36,100,40"))
    #expect(property.value(fromWire: "32,100,40") == .color(.hs(hue: 32, saturation: 100)))
    #expect(property.value(fromWire: "128,68,0,7") == nil)
    // Three bytes are coarser than a pale hue.
    let pale = Value.color(.hs(hue: 32, saturation: 3))
    #expect(property.wireValue(of: pale) == "255,251,247")
    #expect(property.isShown(pale, by: "30,3,100"))
  }

  @Test(arguments: [
    ("#80FF8800", true), ("#AFF8800", true), ("#FF8800", true), ("#80FF8801FF", false),
    ("80FF8800", false), ("FF8800", true),
  ])
  func `a white channel before the others is left out`(report: String, isOrange: Bool) {
    let color = Color(wire: .string(report), encoding: .hex)
    #expect(color == (isOrange ? .rgb(red: 255, green: 136, blue: 0) : nil))
  }

  @Test(arguments: [
    ("#ff0000", 0.64, 0.33), ("#00ff00", 0.3, 0.6), ("#0000ff", 0.15, 0.06),
    ("#ffffff", 0.3127, 0.329), ("#000000", 0.3127, 0.329),
  ])
  func `coordinates are those of sRGB`(hex: String, x: Double, y: Double) throws {
    let color = try #require(Color(hex: hex))
    #expect(color.wire(.xy) == .object(["x": .number(x), "y": .number(y)]))
  }

  @Test func `colors survive every encoding except for rounding`() {
    for red in stride(from: UInt8(0), through: 255, by: 51) {
      for green in stride(from: UInt8(0), through: 255, by: 51) {
        let value = Value.color(.rgb(red: red, green: green, blue: 255))
        for encoding in ColorEncoding.allCases {
          let property = Property.color(encoding)
          #expect(property.isShown(value, by: property.wireValue(of: value)))
        }
      }
    }
  }

  @Test func `a color report may have further members`() {
    let report = JSONValue.object(["hue": 32, "saturation": 100, "x": 0.3, "y": 0.4])
    #expect(Property.color(.xy).value(fromWire: report) == .color(.xy(x: 0.3, y: 0.4)))
    #expect(
      Property.color(.hs).value(fromWire: report) == .color(.hs(hue: 32, saturation: 100))
    )
  }

  @Test func `values with the same wire value are the same on the wire`() {
    let property = Property.number(
      0...1000,
      scale: .linear(
        from: .init(0, 1000),
        to: .init(0, 10),
        decimals: 0
      )
    )
    #expect(property.isSameOnWire(.number(500), .number(510)))
    #expect(!property.isSameOnWire(.number(500), .number(600)))
  }

  @Test func `an action has no state`() {
    #expect(Property.of(.action(["STOP"])).value(fromWire: "STOP") == nil)
  }

  @Test func `availability has several words and ignores unknown ones`() {
    let source = AvailabilitySource(
      topic: "t",
      value: .whole,
      online: true,
      offline: ["lost", "sleeping"]
    )
    #expect(source.isOnline(in: "true") == true)
    #expect(source.isOnline(in: "sleeping") == false)
    #expect(source.isOnline(in: "init") == nil)
  }
}

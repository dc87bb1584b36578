// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Testing
import Values

/// Numbers in texts, and numbers with wire values of their own.
struct NumberFormatTests {
  @Test(arguments: [
    ("TT=%g", 20.5, "TT=20.5"), ("TT=%g", 20, "TT=20"), ("%g%%", 50, "50%"),
    ("Z01%02X", 5, "Z0105"), ("Z01%02X", 255, "Z01FF"), ("%x", 171, "ab"), ("%04X", -10, "-00A"),
    ("%.1f °C", 21, "21.0 °C"), ("%.2f", -0.125, "-0.12"), ("%d", 7.6, "8"), ("%03d", 7, "007"),
    ("{CMD:12,VALUE:%g,XTIME:0}", 40, "{CMD:12,VALUE:40,XTIME:0}"),
  ])
  func `a number is put into a text and read from it`(format: String, number: Double, text: String)
    throws
  {
    let format = try #require(NumberFormat(format))
    #expect(format.text(number) == text)
    let read = try #require(format.number(in: text))
    #expect((read - number).magnitude < 0.5)
  }

  @Test(
    arguments: [
      ("%g", "50 %", 50), ("%g", "21.5°C", 21.5), ("%g", "1e3", 1000), ("%g", "5 eggs", 5),
      ("%g", "5eggs", 5), ("%g", "$ 7.5", 7.5), ("T: %g", "T:   7", 7), ("%X", "1e5", 485),
      ("%X", "0A h", 10), ("%g", "hot", nil), ("%g", "", nil), ("TT=%g", "SW=5", nil),
      ("%g", "--", nil),
    ] as [(String, String, Double?)]
  )
  func `what follows a number is ignored`(format: String, text: String, number: Double?) throws {
    #expect(try #require(NumberFormat(format)).number(in: text) == number)
  }

  @Test(arguments: ["", "TT=", "%", "%%", "%s", "%g %g", "%5d", "%.1d", "%099X", "%.12f", "%-3d"])
  func `any other text is no format`(text: String) {
    #expect(NumberFormat(text) == nil)
  }

  @Test func `a number beyond all digits has a text`() throws {
    for number in [1e300, -1e300, 1e17] {
      for format in ["%X", "%.3f", "%g"] {
        #expect(try #require(NumberFormat(format)).text(number).isEmpty == false)
      }
    }
  }

  @Test func `a device confirms a number in the text that it was sent in`() {
    var property = Property.number(16...32, step: 1)
    property.wire.format = NumberFormat("F3802%02X")
    #expect(property.wireValue(of: .number(20)) == "F380214")
    #expect(property.isShown(.number(20), by: "F380214"))
    #expect(property.value(fromWire: "F380214") == .number(20))
    property.wire.reportedFormat = NumberFormat("%g")
    #expect(property.isShown(.number(20), by: 20))
    #expect(property.value(fromWire: "21 °C") == .number(21))
  }

  @Test func `numbers may have wire values of their own`() {
    var property = Property.number(0...3, step: 1)
    property.wire.words = ["0": "off", "1": 16, "2": 32]
    #expect(property.wireValue(of: .number(1)) == 16)
    #expect(property.value(fromWire: 32) == .number(2))
    #expect(property.value(fromWire: "OFF") == .number(0))
    #expect(property.isShown(.number(1), by: "16"))
    #expect(!property.isShown(.number(1), by: 1))
    #expect(property.value(fromWire: 1) == nil)
    #expect(property.wireValue(of: .number(3)) == 3)
    #expect(property.value(fromWire: 3) == .number(3))
  }

  @Test func `other reports may stand for a number, or for none`() {
    var property = Property.number(0...31)
    property.wire.reportedWords = ["9": ["summer"], "none": [-1, "---"]]
    property.wire.reportedFormat = NumberFormat("%g")
    #expect(property.value(fromWire: "summer") == .number(9))
    #expect(property.isShown(.number(9), by: "summer"))
    #expect(property.value(fromWire: "20 °C") == .number(20))
    for report in [-1, "-1", "---"] as [JSONValue] {
      #expect(property.value(fromWire: report) == nil)
      #expect(property.isUnknown(report))
    }
    #expect(!property.isUnknown("winter"))
  }
}

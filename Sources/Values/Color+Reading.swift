// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

extension Color {
  /// The accepted forms, for error messages.
  package static let forms =
    ##"a color such as red, "#ff8800", {"r","g","b"}, {"x","y"} or {"h","s"}"##

  /// Reads `#rrggbb`.
  package init?(hex text: some StringProtocol) {
    let bytes = Array(text.utf8)
    guard bytes.count == 7, bytes[0] == UInt8(ascii: "#") else { return nil }
    var channels: [UInt8] = []
    for index in stride(from: 1, to: 7, by: 2) {
      guard let high = Self.nibble(bytes[index]), let low = Self.nibble(bytes[index + 1]) else {
        return nil
      }
      channels.append(high << 4 | low)
    }
    self = .rgb(red: channels[0], green: channels[1], blue: channels[2])
  }

  /// Reads an object that has exactly the members of one form, each within its bounds.
  package init?(object: JSONValue) {
    guard case .object(let members) = object else { return nil }
    switch members.map(\.name).sorted() {
    case ["b", "g", "r"]: self.init(channels: ["r", "g", "b"], of: object)
    case ["x", "y"]: self.init(x: object["x"], y: object["y"])
    case ["h", "s"]: self.init(hue: object["h"], saturation: object["s"])
    default: return nil
    }
  }

  /// Reads a report.
  ///
  /// The form of `encoding` has precedence over others; extra members are ignored.
  package init?(wire: JSONValue, encoding: ColorEncoding) {
    if let text = wire.string {
      self.init(wireText: text, encoding: encoding)
      return
    }
    // Six digits without letters are a number where they are a whole payload.
    if encoding == .hex, case .integer(100_000...999_999) = wire, let text = wire.scalarText {
      self.init(wireText: text, encoding: encoding)
      return
    }
    if case .array(let channels) = wire {
      self.init(channels: channels.prefix(3).compactMap(\.double))
      return
    }
    let readings: [(ColorEncoding, Color?)] = [
      (.xy, Color(x: wire["x"], y: wire["y"])),
      (.hs, Color(hue: wire["h"], saturation: wire["s"])),
      (.hs, Color(hue: wire["hue"], saturation: wire["saturation"])),
      (.rgb, Color(channels: ["r", "g", "b"], of: wire)),
      (.rgb, Color(channels: ["red", "green", "blue"], of: wire)),
    ]
    let preferred = readings.first { $0.0 == encoding && $0.1 != nil }
    guard let color = preferred?.1 ?? readings.compactMap(\.1).first else { return nil }
    self = color
  }

  private init?(wireText text: String, encoding: ColorEncoding) {
    // WLED puts a white channel that is on before the others, without leading zeros (wled00/mqtt.cpp).
    let isWithWhite = text.utf8.first == UInt8(ascii: "#") && (8...9).contains(text.utf8.count)
    if let color = Color(hex: isWithWhite ? "#\(text.suffix(6))" : text) {
      self = color
      return
    }
    // OpenBeken reports the digits alone.
    if encoding == .hex, text.utf8.count == 6, let color = Color(hex: "#\(text)") {
      self = color
      return
    }
    var parts = text.split(separator: ",", omittingEmptySubsequences: false)
    if parts.count == 4, parts[0] == "rgb" || parts[0] == "hsv" { parts.removeFirst() }
    let numbers = parts.compactMap { NumberText.parse($0) }
    if encoding == .commaHS {
      guard parts.count == numbers.count, (2...3).contains(parts.count) else { return nil }
      self.init(hue: .number(numbers[0]), saturation: .number(numbers[1]))
      return
    }
    guard parts.count == 3, numbers.count == 3 else { return nil }
    switch encoding {
    case .hsb, .homieHSV:
      guard let color = Color(hue: numbers[0], saturation: numbers[1], brightness: numbers[2])
      else { return nil }
      self = color
    case .rgb, .xy, .hs, .hex, .commaHS, .commaRGB, .homie, .channels:
      self.init(channels: numbers)
    }
  }

  private init?(channels names: [String], of object: JSONValue) {
    let numbers = names.compactMap { object[$0]?.double }
    guard numbers.count == 3 else { return nil }
    self.init(channels: numbers)
  }

  private init?(channels numbers: [Double]) {
    let bytes = numbers.compactMap { UInt8(exactly: $0.rounded()) }
    guard bytes.count == 3 else { return nil }
    self = .rgb(red: bytes[0], green: bytes[1], blue: bytes[2])
  }

  private init?(x: JSONValue?, y: JSONValue?) {
    guard let x = x?.double, let y = y?.double, (0...1).contains(x), (0...1).contains(y) else {
      return nil
    }
    self = .xy(x: x, y: y)
  }

  private init?(hue: JSONValue?, saturation: JSONValue?) {
    guard let hue = hue?.double, let saturation = saturation?.double,
      (0...360).contains(hue), (0...100).contains(saturation)
    else { return nil }
    self = .hs(hue: hue, saturation: saturation)
  }

  /// Converts to channels, the only form that carries brightness.
  private init?(hue: Double, saturation: Double, brightness: Double) {
    guard (0...100).contains(brightness),
      let full = Color(hue: .number(hue), saturation: .number(saturation))
    else { return nil }
    if brightness == 100 {
      self = full
      return
    }
    let rgb = full.rgb
    let channels = [rgb.red, rgb.green, rgb.blue].map { Double($0) * brightness / 100 }
    self.init(channels: channels)
  }

  private static func nibble(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

private import Glibc
package import JSON

/// A color, kept in the form in which it was given.
package enum Color: Hashable, Sendable {
  /// sRGB channels.
  case rgb(red: UInt8, green: UInt8, blue: UInt8)
  /// CIE 1931 coordinates, each 0 to 1.
  case xy(x: Double, y: Double)
  /// Hue in degrees, 0 to 360; saturation in percent.
  case hs(hue: Double, saturation: Double)
}

extension Color {
  /// `"#ff8800"`, `{"x":…,"y":…}` or `{"h":…,"s":…}`.
  package var json: JSONValue {
    switch self {
    case .rgb(let red, let green, let blue):
      .string(Self.hex(RGB(red: red, green: green, blue: blue)))
    case .xy(let x, let y): .object(["x": .init(shortest: x), "y": .init(shortest: y)])
    case .hs(let hue, let saturation):
      .object(["h": .init(shortest: hue), "s": .init(shortest: saturation)])
    }
  }

  /// The color as a wire value in `encoding`.
  package func wire(_ encoding: ColorEncoding) -> JSONValue {
    switch encoding {
    case .rgb:
      let rgb = rgb
      return .object([
        "r": .integer(Int64(rgb.red)), "g": .integer(Int64(rgb.green)),
        "b": .integer(Int64(rgb.blue)),
      ])
    case .xy:
      let (x, y) = xy
      return .object([
        "x": .init(shortest: (x * 10_000).rounded() / 10_000),
        "y": .init(shortest: (y * 10_000).rounded() / 10_000),
      ])
    case .hs:
      let hsb = hsb
      return .object([
        "h": .init(shortest: hsb.hue.rounded()), "s": .init(shortest: hsb.saturation.rounded()),
      ])
    case .hex: return .string(Self.hex(rgb))
    case .hsb: return .string(Self.degreesAndPercent(hsb))
    case .commaHS:
      let hsb = hsb
      return .string("\(Int(hsb.hue.rounded())),\(Int(hsb.saturation.rounded()))")
    case .commaRGB: return .string("\(rgb.red),\(rgb.green),\(rgb.blue)")
    case .homie: return .string("rgb,\(rgb.red),\(rgb.green),\(rgb.blue)")
    case .homieHSV: return .string("hsv,\(Self.degreesAndPercent(hsb))")
    case .channels:
      let rgb = rgb
      return .array([rgb.red, rgb.green, rgb.blue].map { .integer(Int64($0)) })
    }
  }

  private static func degreesAndPercent(
    _ hsb: (hue: Double, saturation: Double, brightness: Double)
  ) -> String {
    "\(Int(hsb.hue.rounded())),\(Int(hsb.saturation.rounded())),\(Int(hsb.brightness.rounded()))"
  }

  static func hex(_ rgb: RGB) -> String {
    var text = "#"
    for channel in [rgb.red, rgb.green, rgb.blue] {
      if channel < 16 { text += "0" }
      text += String(channel, radix: 16)
    }
    return text
  }
}

/// The form of a color on the wire.
package enum ColorEncoding: String, CaseIterable, Hashable, Sendable {
  /// `{"r":255,"g":136,"b":0}`
  case rgb
  /// `{"x":0.5336,"y":0.4145}`
  case xy
  /// `{"h":32,"s":100}`
  case hs
  /// `"#ff8800"`
  case hex
  /// `"32,100,100"`: degrees, percent, percent.
  case hsb = "h,s,b"
  /// `"32,100"`: degrees, percent; a third part of a report is ignored.
  case commaHS = "h,s"
  /// `"255,136,0"`
  case commaRGB = "r,g,b"
  /// `"rgb,255,136,0"`, the form of Homie 5.
  case homie = "rgb,r,g,b"
  /// `"hsv,32,100,100"`, another form of Homie 5.
  case homieHSV = "hsv,h,s,v"
  /// `[255,136,0]`
  case channels = "[r,g,b]"
}

extension Color {
  /// Three channels, 0 to 255.
  package struct RGB: Hashable, Sendable {
    package var red: UInt8
    package var green: UInt8
    package var blue: UInt8
  }

  /// The sRGB channels.
  ///
  /// Coordinates and hues carry no brightness and convert at full brightness.
  package var rgb: RGB {
    switch self {
    case .rgb(let red, let green, let blue): RGB(red: red, green: green, blue: blue)
    case .xy(let x, let y): Self.rgb(x: x, y: y)
    case .hs(let hue, let saturation): Self.rgb(hue: hue, saturation: saturation)
    }
  }

  /// CIE 1931 coordinates for illuminant D65.
  ///
  /// Black converts to the white point.
  package var xy: (x: Double, y: Double) {
    if case .xy(let x, let y) = self { return (x, y) }
    let rgb = rgb
    let (r, g, b) = (Self.linear(rgb.red), Self.linear(rgb.green), Self.linear(rgb.blue))
    let x = 0.4124564 * r + 0.3575761 * g + 0.1804375 * b
    let y = 0.2126729 * r + 0.7151522 * g + 0.0721750 * b
    let z = 0.0193339 * r + 0.1191920 * g + 0.9503041 * b
    let sum = x + y + z
    return sum > 0 ? (x / sum, y / sum) : (0.3127, 0.3290)
  }

  /// Hue in degrees (0 to 360), saturation and brightness in percent.
  package var hsb: (hue: Double, saturation: Double, brightness: Double) {
    if case .hs(let hue, let saturation) = self { return (hue, saturation, 100) }
    let rgb = rgb
    let (r, g, b) = (Double(rgb.red), Double(rgb.green), Double(rgb.blue))
    let high = max(r, g, b)
    let spread = high - min(r, g, b)
    guard spread > 0 else { return (0, 0, high / 2.55) }
    let sextant =
      if high == r { (g - b) / spread } else if high == g { (b - r) / spread + 2 } else {
        (r - g) / spread + 4
      }
    return ((sextant < 0 ? sextant + 6 : sextant) * 60, spread / high * 100, high / 2.55)
  }

  private static func rgb(hue: Double, saturation: Double) -> RGB {
    let sextant = hue / 60
    func channel(_ offset: Double) -> UInt8 {
      let place = (offset + sextant).truncatingRemainder(dividingBy: 6)
      let depth = max(0, min(place, 4 - place, 1))
      return UInt8(((1 - saturation / 100 * depth) * 255).rounded())
    }
    return RGB(red: channel(5), green: channel(3), blue: channel(1))
  }

  private static func rgb(x: Double, y: Double) -> RGB {
    guard y > 0 else { return RGB(red: 0, green: 0, blue: 255) }
    let (capitalX, capitalZ) = (x / y, (1 - x - y) / y)
    let channels = [
      3.2404542 * capitalX - 1.5371385 - 0.4985314 * capitalZ,
      -0.9692660 * capitalX + 1.8760108 + 0.0415560 * capitalZ,
      0.0556434 * capitalX - 0.2040259 + 1.0572252 * capitalZ,
    ].map { max($0, 0) }
    let high = max(channels[0], channels[1], channels[2])
    guard high > 0 else { return RGB(red: 255, green: 255, blue: 255) }
    let bytes = channels.map { UInt8((companded($0 / high) * 255).rounded()) }
    return RGB(red: bytes[0], green: bytes[1], blue: bytes[2])
  }

  private static func linear(_ channel: UInt8) -> Double {
    let value = Double(channel) / 255
    return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
  }

  private static func companded(_ value: Double) -> Double {
    value <= 0.0031308 ? value * 12.92 : 1.055 * pow(value, 1 / 2.4) - 0.055
  }
}

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
    // WLED puts a white channel that is on before the others, without leading zeros
    // (wled00/mqtt.cpp).
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

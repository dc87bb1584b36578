// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
private import Glibc

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
  /// `"255,136,0"`; white channels behind them in a report are ignored.
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
    let digits = text.dropFirst()
    guard text.utf8.count == 7, text.first == "#", digits.allSatisfy(\.isHexDigit),
      let number = UInt32(digits, radix: 16)
    else { return nil }
    self.init(number: number)
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
    // Tasmota puts white channels behind the others.
    let most = encoding == .commaRGB ? 5 : 3
    guard (3...most).contains(parts.count), numbers.count == parts.count else { return nil }
    switch encoding {
    case .hsb, .homieHSV:
      guard let color = Color(hue: numbers[0], saturation: numbers[1], brightness: numbers[2])
      else { return nil }
      self = color
    case .rgb, .xy, .hs, .hex, .commaHS, .commaRGB, .homie, .channels:
      self.init(channels: Array(numbers.prefix(3)))
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

  /// The color 0xRRGGBB.
  private init(number: UInt32) {
    self = .rgb(
      red: UInt8(truncatingIfNeeded: number >> 16),
      green: UInt8(truncatingIfNeeded: number >> 8),
      blue: UInt8(truncatingIfNeeded: number)
    )
  }
}

extension Color {
  /// Reads a color word of CSS, in any case: `red`, `DarkOrange`.
  package init?(word: some StringProtocol) {
    guard word.utf8.count <= Self.longestWord, let number = Self.channels[word.lowercased()]
    else { return nil }
    self.init(number: number)
  }

  /// The color words, in alphabetical order.
  package static let words = channels.keys.sorted()

  /// The color as `#rrggbb`, however it was given.
  package var hexText: String { Self.hex(rgb) }

  private static let longestWord = 24

  /// Red, green and blue of each word, read when first needed.
  private static let channels: [String: UInt32] = {
    let words = table.split(whereSeparator: \.isWhitespace)
    var channels: [String: UInt32] = [:]
    for word in words {
      let parts = word.split(separator: "=")
      guard parts.count == 2, let number = UInt32(parts[1], radix: 16) else {
        preconditionFailure("A word of the table is WORD=RRGGBB.")
      }
      channels[String(parts[0])] = number
    }
    return channels
  }()

  /// The named colors of CSS Color Module Level 4.
  private static let table = """
    aliceblue=f0f8ff antiquewhite=faebd7 aqua=00ffff aquamarine=7fffd4 azure=f0ffff beige=f5f5dc
    bisque=ffe4c4 black=000000 blanchedalmond=ffebcd blue=0000ff blueviolet=8a2be2 brown=a52a2a
    burlywood=deb887 cadetblue=5f9ea0 chartreuse=7fff00 chocolate=d2691e coral=ff7f50
    cornflowerblue=6495ed cornsilk=fff8dc crimson=dc143c cyan=00ffff darkblue=00008b
    darkcyan=008b8b darkgoldenrod=b8860b darkgray=a9a9a9 darkgreen=006400 darkgrey=a9a9a9
    darkkhaki=bdb76b darkmagenta=8b008b darkolivegreen=556b2f darkorange=ff8c00 darkorchid=9932cc
    darkred=8b0000 darksalmon=e9967a darkseagreen=8fbc8f darkslateblue=483d8b darkslategray=2f4f4f
    darkslategrey=2f4f4f darkturquoise=00ced1 darkviolet=9400d3 deeppink=ff1493 deepskyblue=00bfff
    dimgray=696969 dimgrey=696969 dodgerblue=1e90ff firebrick=b22222 floralwhite=fffaf0
    forestgreen=228b22 fuchsia=ff00ff gainsboro=dcdcdc ghostwhite=f8f8ff gold=ffd700
    goldenrod=daa520 gray=808080 green=008000 greenyellow=adff2f grey=808080 honeydew=f0fff0
    hotpink=ff69b4 indianred=cd5c5c indigo=4b0082 ivory=fffff0 khaki=f0e68c lavender=e6e6fa
    lavenderblush=fff0f5 lawngreen=7cfc00 lemonchiffon=fffacd lightblue=add8e6 lightcoral=f08080
    lightcyan=e0ffff lightgoldenrodyellow=fafad2 lightgray=d3d3d3 lightgreen=90ee90
    lightgrey=d3d3d3 lightpink=ffb6c1 lightsalmon=ffa07a lightseagreen=20b2aa lightskyblue=87cefa
    lightslategray=778899 lightslategrey=778899 lightsteelblue=b0c4de lightyellow=ffffe0
    lime=00ff00 limegreen=32cd32 linen=faf0e6 magenta=ff00ff maroon=800000 mediumaquamarine=66cdaa
    mediumblue=0000cd mediumorchid=ba55d3 mediumpurple=9370db mediumseagreen=3cb371
    mediumslateblue=7b68ee mediumspringgreen=00fa9a mediumturquoise=48d1cc mediumvioletred=c71585
    midnightblue=191970 mintcream=f5fffa mistyrose=ffe4e1 moccasin=ffe4b5 navajowhite=ffdead
    navy=000080 oldlace=fdf5e6 olive=808000 olivedrab=6b8e23 orange=ffa500 orangered=ff4500
    orchid=da70d6 palegoldenrod=eee8aa palegreen=98fb98 paleturquoise=afeeee palevioletred=db7093
    papayawhip=ffefd5 peachpuff=ffdab9 peru=cd853f pink=ffc0cb plum=dda0dd powderblue=b0e0e6
    purple=800080 rebeccapurple=663399 red=ff0000 rosybrown=bc8f8f royalblue=4169e1
    saddlebrown=8b4513 salmon=fa8072 sandybrown=f4a460 seagreen=2e8b57 seashell=fff5ee
    sienna=a0522d silver=c0c0c0 skyblue=87ceeb slateblue=6a5acd slategray=708090 slategrey=708090
    snow=fffafa springgreen=00ff7f steelblue=4682b4 tan=d2b48c teal=008080 thistle=d8bfd8
    tomato=ff6347 turquoise=40e0d0 violet=ee82ee wheat=f5deb3 white=ffffff whitesmoke=f5f5f5
    yellow=ffff00 yellowgreen=9acd32
    """
}

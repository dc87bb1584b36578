// Settle
// SPDX-License-Identifier: Apache-2.0

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

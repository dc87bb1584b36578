// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// A color, in the form it was given.
package enum Color: Hashable, Sendable {
  case rgb(red: UInt8, green: UInt8, blue: UInt8)
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

  /// The color as `encoding` has it on the wire.
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
    case .hsb:
      let hsb = hsb
      return .string(
        "\(Int(hsb.hue.rounded())),\(Int(hsb.saturation.rounded())),\(Int(hsb.brightness.rounded()))"
      )
    case .commaRGB: return .string("\(rgb.red),\(rgb.green),\(rgb.blue)")
    case .homie: return .string("rgb,\(rgb.red),\(rgb.green),\(rgb.blue)")
    }
  }

  private static func hex(_ rgb: RGB) -> String {
    var text = "#"
    for channel in [rgb.red, rgb.green, rgb.blue] {
      if channel < 16 { text += "0" }
      text += String(channel, radix: 16)
    }
    return text
  }
}

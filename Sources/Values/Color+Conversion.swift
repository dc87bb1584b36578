// Settle
// SPDX-License-Identifier: Apache-2.0

private import Glibc

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

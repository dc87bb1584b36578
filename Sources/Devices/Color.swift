// Settle
// SPDX-License-Identifier: Apache-2.0

/// A color, in the form it was given.
package enum Color: Hashable, Sendable {
  case rgb(red: UInt8, green: UInt8, blue: UInt8)
  case xy(x: Double, y: Double)
  /// Hue in degrees, 0 to 360; saturation in percent.
  case hs(hue: Double, saturation: Double)
}

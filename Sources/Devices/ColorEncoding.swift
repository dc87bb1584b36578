// Settle
// SPDX-License-Identifier: Apache-2.0

/// How a color leaves for the device.
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
  /// `"255,136,0"`
  case commaRGB = "r,g,b"
  /// `"rgb,255,136,0"`, as Homie 5 has it.
  case homie = "rgb,r,g,b"
}

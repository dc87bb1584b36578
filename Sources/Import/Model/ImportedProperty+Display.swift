// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON

extension ImportedProperty {
  /// Lets people read a lamp's brightness in percent and its white tone in kelvin.
  mutating func setDisplay() {
    if id.hasPrefix("brightness"), self["range"] == [0, 254] {
      let scale: JSONValue = .object(["from": [0, 254], "to": [0, 100]])
      self["display"] = .object(["unit": "%", "scale": scale])
    } else if id.hasPrefix("color_temp"), self["unit"] == "mired",
      (self["range"]?.elements?.first?.double ?? 0) > 0
    {
      // Kelvin of 0 mired and less is no number.
      self["display"] = .object(["unit": "K", "scale": "mired"])
    }
  }
}

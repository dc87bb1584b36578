// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Values

/// The announcement of a lamp, in the JSON schema.
extension Light {
  /// The fields beside those that every entity has.
  ///
  /// `topic` is that of the main property's target.
  func fields(_ properties: [Property], below topic: String) -> [JSONValue.Member] {
    var fields: [JSONValue.Member] = [
      .init("schema", "json"), .init("command_topic", .string("\(topic)/light/set")),
      .init("state_topic", .string("\(topic)/light")), .init("optimistic", false),
    ]
    if let brightness {
      fields += [
        .init("brightness", true),
        .init("brightness_scale", JSONValue(shortest: properties[brightness].brightnessScale)),
      ]
    }
    fields.append(.init("supported_color_modes", .array(modes(properties).map { .string($0) })))
    if let temperature, let rule = properties[temperature].kind.numberRule {
      fields += Self.mireds(rule)
    }
    if let effect, let words = properties[effect].kind.words {
      fields += [
        .init("effect", true), .init("effect_list", .array(words.map { .string($0) })),
      ]
    }
    return fields
  }

  /// The color modes, in Home Assistant's words.
  private func modes(_ properties: [Property]) -> [String] {
    var modes: [String] = []
    if temperature != nil { modes.append("color_temp") }
    if let mode = colorMode(properties) { modes.append(mode.rawValue) }
    return modes.isEmpty ? ["brightness"] : modes
  }

  /// The range of white tones in mireds, whole ones within the range.
  private static func mireds(_ rule: NumberRule) -> [JSONValue.Member] {
    guard let range = rule.range else { return [] }
    let (low, high) =
      rule.isKelvin
      ? (1_000_000 / range.upperBound, 1_000_000 / range.lowerBound)
      : (range.lowerBound, range.upperBound)
    return [
      .init("min_mireds", .integer(Int64(low.rounded(.up)))),
      .init("max_mireds", .integer(Int64(high.rounded(.down)))),
    ]
  }
}

extension Property {
  /// The highest level of a brightness, as Home Assistant has it: its levels are whole, from 1.
  var brightnessScale: Double {
    let high = kind.numberRule?.range?.upperBound ?? 255
    return high < 2 || high != high.rounded() ? 255 : high
  }
}

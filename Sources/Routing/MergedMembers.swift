// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// Merges the members of JSON objects that follow each other, as `merge: json` does.
package enum MergedMembers {
  /// The ways to write a color as an object.
  ///
  /// Members of one way complete each other, as hue and saturation do; members of two ways
  /// contradict each other.
  ///
  /// Source: Zigbee2MQTT, `converters/toZigbee.ts` and `lib/color.ts`, which read one of these.
  private static let colorForms: [Set<String>] = [
    ["hue", "saturation", "value"], ["hue", "saturation", "brightness"],
    ["hue", "saturation", "lightness"], ["h", "s", "v"], ["h", "s", "b"], ["h", "s", "l"],
    ["x", "y"], ["r", "g", "b"],
  ]
  /// Members that a lamp can obey only one of.
  private static let alternatives: Set<String> = ["color", "color_temp", "color_temp_percent"]

  /// `older` with every member of `newer` in its place, or at the end.
  ///
  /// Parts of a color complete an older color of the same form. A color drops an older color
  /// temperature, and the other way around. A brightness, which turns a lamp on, drops an older
  /// off.
  ///
  /// Source: `light_onoff_brightness` in `converters/toZigbee.ts`: of an off and a brightness in
  /// one message the off counts.
  package static func newest(
    _ older: [JSONValue.Member],
    _ newer: [JSONValue.Member]
  ) -> [JSONValue.Member] {
    var merged = older
    if newer.contains(where: { alternatives.contains($0.name) }) {
      let kept = Set(newer.map(\.name))
      merged.removeAll { alternatives.contains($0.name) && !kept.contains($0.name) }
    }
    if newer.contains(where: { $0.name == "brightness" && ($0.value.double ?? 0) > 0 }) {
      merged.removeAll { $0.name == "state" && $0.value.string?.lowercased() == "off" }
    }
    for member in newer {
      if let place = merged.firstIndex(where: { $0.name == member.name }) {
        merged[place].value = completed(merged[place].value, by: member.value)
      } else {
        merged.append(member)
      }
    }
    return merged
  }

  /// `newer`, with the parts of `older` that it leaves open if both are colors of one form.
  private static func completed(_ older: JSONValue, by newer: JSONValue) -> JSONValue {
    guard case .object(let old) = older, case .object(let new) = newer else { return newer }
    let names = Set((old + new).map(\.name))
    guard colorForms.contains(where: { names.isSubset(of: $0) }) else { return newer }
    return .object(newest(old, new))
  }
}

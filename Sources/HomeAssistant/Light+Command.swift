// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import JSON
import Values

/// What Home Assistant asks of a lamp in the JSON schema.
extension Light {
  /// The members of a device-level set that a command stands for.
  ///
  /// Levels and white tones beyond the range become its nearest end, because Home Assistant rounds
  /// them. What the lamp does not have is left out. `last` is the last level of a lamp without a
  /// switch of its own, to which it is switched on.
  package func members(
    for command: JSONValue,
    _ properties: [Property],
    options: [String],
    last: Double?
  ) -> [JSONValue.Member] {
    var members: [JSONValue.Member] = []
    func add(_ place: Int?, _ value: JSONValue?) {
      guard let place, let value else { return }
      members.append(.init(properties[place].id, value))
    }
    let isOn = command["state"]?.string.map { $0 == "ON" }
    let level = brightness.flatMap { inRange(command["brightness"], properties[$0]) }
    if let power {
      add(power, isOn.map { .boolean($0) })
      add(brightness, level)
    } else if let brightness {
      let high = properties[brightness].kind.numberRule?.range?.upperBound ?? 255
      add(brightness, isOn.map { $0 ? level ?? JSONValue(shortest: last ?? high) : 0 } ?? level)
    }
    add(temperature, temperature.flatMap { tone(command["color_temp"], properties[$0]) })
    add(color, command["color"])
    add(effect, command["effect"])
    for option in options {
      if let value = command[option] { members.append(.init(option, value)) }
    }
    return members
  }

  /// A level within the range; one above 0, because 0 may mean off.
  private func inRange(_ shown: JSONValue?, _ property: Property) -> JSONValue? {
    guard let shown = shown?.double, let range = property.kind.numberRule?.range else {
      return shown
    }
    // On another scale, four digits are finer than any level of Home Assistant.
    let level = (shown / property.brightnessScale * range.upperBound * 10_000).rounded() / 10_000
    return JSONValue(shortest: Self.within(range, level))
  }

  private func tone(_ mireds: JSONValue?, _ property: Property) -> JSONValue? {
    guard let mireds = mireds?.double, mireds > 0, let rule = property.kind.numberRule,
      let range = rule.range
    else { return mireds }
    let tone = rule.isKelvin ? (1_000_000 / mireds).rounded() : mireds
    return JSONValue(shortest: Self.within(range, tone))
  }

  private static func within(_ range: ClosedRange<Double>, _ number: Double) -> Double {
    min(max(number, range.lowerBound), range.upperBound)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
import JSON
import Values

/// The properties of a device that make one lamp, by their places in its list of properties.
package struct Light: Hashable, Sendable {
  /// Where Home Assistant expects a lamp's color.
  enum ColorMode: String {
    case xy
    case hs
    case rgb
  }

  /// Switches the lamp; `nil` where a brightness of 0 is off.
  package private(set) var power: Int?
  package private(set) var brightness: Int?
  private(set) var temperature: Int?
  private(set) var color: Int?
  /// What the device says of its color mode.
  private(set) var mode: Int?
  private(set) var effect: Int?
  /// What the names of its properties end with, such as `_l1` for those of an endpoint.
  let ending: String

  /// The property that names the lamp.
  package var main: Int { power ?? brightness ?? 0 }

  /// The lamps of a device with these properties.
  package static func all(in properties: [Property]) -> [Light] {
    var used: Set<Int> = []
    var lights: [Light] = []
    for ending in endings(in: properties) {
      let light = Light(of: properties, ending: ending, used: used)
      guard light.isLamp(properties) else { continue }
      used.formUnion(light.places)
      lights.append(light)
    }
    return lights
  }

  /// All places of its properties.
  package var places: [Int] {
    [power, brightness, temperature, color, mode, effect].compactMap { $0 }
  }

  private init(of properties: [Property], ending: String, used: Set<Int>) {
    func find(
      _ names: [String],
      isReadOnly: Bool = false,
      _ fits: (Property) -> Bool
    ) -> Int? {
      let free = properties.indices.filter {
        !used.contains($0) && properties[$0].isReadOnly == isReadOnly && fits(properties[$0])
      }
      let wanted = Set(names.map { $0 + ending })
      return free.first { wanted.contains(properties[$0].id) }
        ?? free.first { properties[$0].isCalled(wanted) }
    }
    self.ending = ending
    power = find(["power", "state", "on"]) { $0.kind == .boolean && !$0.isLock }
    brightness = find(["brightness", "level"]) { $0.kind.numberRule != nil }
    temperature = find(["color_temp", "color_temperature", "ct"]) { $0.kind.isWhiteTone }
    color = find(["color", "colour"]) { $0.kind == .color }
    mode = find(["color_mode"], isReadOnly: true) { $0.kind.words != nil || $0.kind == .text }
    effect = find(["effect"]) { $0.kind.words?.isEmpty == false }
  }

  /// Whether it has what makes a lamp: a switch and something to adjust, or a brightness from 0.
  private func isLamp(_ properties: [Property]) -> Bool {
    if power != nil { return brightness != nil || temperature != nil || color != nil }
    guard let brightness else { return false }
    let property = properties[brightness]
    return property.isCalled(["brightness\(ending)"])
      && property.kind.numberRule?.range?.lowerBound == 0
  }

  /// What the names of a lamp's properties may end with, nothing first.
  private static func endings(in properties: [Property]) -> [String] {
    var endings = [""]
    for property in properties where property.kind == .boolean {
      for name in [property.id] + property.aliases {
        for stem in ["power_", "state_"] where name.hasPrefix(stem) {
          let ending = "_" + name.dropFirst(stem.count)
          if !endings.contains(ending) { endings.append(ending) }
        }
      }
    }
    return endings
  }

  /// The form of its colors.
  func colorMode(_ properties: [Property]) -> ColorMode? {
    color.map { place in
      switch properties[place].wire.reportedEncoding {
      case .xy: .xy
      case .hs, .hsb, .commaHS, .homieHSV: .hs
      case .rgb, .hex, .commaRGB, .homie, .channels: .rgb
      }
    }
  }
}

extension ValueKind {
  /// The words of a choice or an action.
  var words: [String]? {
    switch self {
    case .choice(let words), .action(let words): words
    case .number, .integer, .boolean, .text, .color: nil
    }
  }

  /// Whether numbers are mireds or kelvin.
  ///
  /// Other units, such as percent, make a number entity.
  var isWhiteTone: Bool {
    guard let rule = numberRule, let range = rule.range else { return false }
    if rule.isKelvin { return range.lowerBound > 0 }
    return range.lowerBound >= 50 && range.upperBound <= 1000
  }
}

extension NumberRule {
  var isKelvin: Bool {
    unit == "K" || unit == "kelvin" || (range?.lowerBound ?? 0) >= 1000
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON

/// What a message to a device or a group of Zigbee2MQTT says about lamps, covers and other devices.
///
/// Source: `converters/toZigbee.ts` of zigbee-herdsman-converters: a brightness turns a lamp on and
/// 0 turns it off (`light_onoff_brightness`), color and white tones do not.
struct RouteStatement {
  /// What one member of the message says.
  private struct Claim {
    /// The property; the color temperature is part of the color.
    let name: String
    /// Whether the member sets the property of the whole device, rather than moves it.
    var isAbsolute = true
    /// Whether the lamp is on afterwards, if the member decides that.
    var power: Bool?
  }

  /// Members that modify the others and do nothing alone.
  private static let options: Set<String> = ["transition"]
  /// Members that may change anything.
  private static let unlimited: Set<String> = [
    "scene_recall", "effect", "alert", "identify", "command", "zclcommand", "write",
  ]
  /// Properties that others are moved or addressed by, as in `brightness_step` and `state_left`.
  private static let stems = [
    "state", "brightness", "color", "hue", "saturation", "position", "tilt",
  ]

  private var names: Set<String> = []
  /// Those that are set, whatever they were before.
  private var settled: Set<String> = []
  private var power: Bool?
  /// Whether it is unknown what the message changes.
  private(set) var isUnlimited = false
  /// Whether it sets everything that a scene has.
  private var recallsScene = false

  /// The statement of an object's members; `nil` for a payload that could not be read.
  ///
  /// `isPart`: it is about an endpoint of the device.
  init(_ members: [JSONValue.Member]?, isPart: Bool) {
    guard let members else {
      isUnlimited = true
      return
    }
    for member in members {
      if Self.unlimited.contains(member.name) { isUnlimited = true }
      if member.name == "scene_recall" { recallsScene = !isPart }
      for claim in Self.claims(of: member) {
        names.insert(claim.name)
        guard claim.isAbsolute, !isPart else { continue }
        settled.insert(claim.name)
        if let on = claim.power, power == nil || claim.name == "state" { power = on }
      }
    }
  }

  /// Whether the order of both messages matters.
  func conflicts(with other: RouteStatement) -> Bool {
    isUnlimited || other.isUnlimited || !names.isDisjoint(with: other.names)
      || isOpposite(to: other.power)
  }

  /// The members of an older message that are still to be sent; `nil` if none is.
  func remainder(of older: [JSONValue.Member]) -> [JSONValue.Member]? {
    let rest = older.filter { !replaces($0) }
    if rest.count == older.count { return older }
    return rest.allSatisfy { Self.options.contains($0.name) } ? nil : rest
  }

  private func replaces(_ older: JSONValue.Member) -> Bool {
    let claims = Self.claims(of: older)
    guard !claims.isEmpty, claims.allSatisfy(\.isAbsolute) else { return false }
    return recallsScene
      || claims.contains { settled.contains($0.name) || isOpposite(to: $0.power) }
  }

  private func isOpposite(to other: Bool?) -> Bool {
    guard let power, let other else { return false }
    return power != other
  }

  private static func claims(of member: JSONValue.Member) -> [Claim] {
    let name = member.name
    if options.contains(name) || unlimited.contains(name) { return [] }
    switch name {
    case "state":
      let word = member.value.string?.lowercased()
      let power = word == "on" ? true : word == "off" ? false : nil
      return [Claim(name: name, isAbsolute: word != "toggle", power: power)]
    case "brightness", "brightness_percent":
      return [Claim(name: "brightness", power: member.value.double.map { $0 > 0 })]
    case "position", "tilt":
      // A cover that is opened, closed or stopped goes elsewhere.
      return [Claim(name: name), Claim(name: "state")]
    case "color", "color_temp", "color_temp_percent", "hue", "saturation":
      return [Claim(name: "color")]
    default:
      guard let stem = stems.first(where: { name.hasPrefix($0 + "_") }) else {
        return [Claim(name: name)]
      }
      let isColor = stem == "hue" || stem == "saturation"
      return [Claim(name: isColor ? "color" : stem, isAbsolute: false)]
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON

/// Which devices a topic reaches, by the groups that Zigbee2MQTT announces.
package struct RouteGroups {
  /// Where groups are announced.
  package struct Source: Hashable, Sendable {
    /// `nil` for the main broker.
    package var broker: String?
    /// The base topic of Zigbee2MQTT.
    package var base: String

    /// The topics of its announcements.
    package var topics: [String] {
      AnnouncedGroups.List.allCases.map { $0.topic(below: base) }
    }
  }

  /// Devices that a topic's messages reach.
  struct Target: Equatable {
    var devices: Set<Int> = []
    /// The property that all its messages set, as `…/set/brightness` does.
    var property: String?
    /// Whether it is an endpoint of a device.
    var isPart = false

    /// Whether a message reaches every device that one for `other` reaches.
    func covers(_ other: Target) -> Bool { other.devices.isSubset(of: devices) }
  }

  /// The base topics of Zigbee2MQTT to which a route may lead, and the groups of each.
  private var announced: [(broker: Int, base: String, groups: AnnouncedGroups)]
  /// The topics of the announcements.
  private let topics: [(place: Int, list: AnnouncedGroups.List, name: [UInt8])]
  /// The devices by base topic and name.
  private var devices: [Int: [String: Set<Int>]] = [:]

  init(_ sources: [(broker: Int, base: String)]) {
    announced = sources.map { ($0.broker, $0.base, AnnouncedGroups()) }
    topics = sources.enumerated().flatMap { place, source in
      AnnouncedGroups.List.allCases.map { (place, $0, Array($0.topic(below: source.base).utf8)) }
    }
  }

  /// Whether no group is known.
  var isEmpty: Bool { devices.isEmpty }

  /// The base topics of Zigbee2MQTT to which these routes may lead.
  ///
  /// A topic without wildcards does not say where the name of its device begins; another route may.
  package static func sources(of routes: [RouteConfiguration]) -> [Source] {
    var found: [Source] = []
    func add(_ route: RouteConfiguration, _ base: some Sequence<Substring>) {
      let source = Source(broker: route.to.broker, base: base.joined(separator: "/"))
      if !source.base.isEmpty, !found.contains(source) { found.append(source) }
    }
    var plain: [(route: RouteConfiguration, levels: ArraySlice<Substring>)] = []
    for route in routes where route.policy != nil {
      let levels = route.to.topic.split(separator: "/", omittingEmptySubsequences: false)
      if let wildcard = levels.firstIndex(where: { $0 == "+" || $0 == "#" }) {
        let rest = levels[(wildcard + 1)...]
        if rest.isEmpty ? levels[wildcard] == "#" : rest.last == "set" {
          add(route, levels[..<wildcard])
        }
      } else if levels.last == "set" {
        plain.append((route, levels.dropLast()))
      }
    }
    let known = found
    for (route, levels) in plain where levels.count > 1 {
      let name = levels.joined(separator: "/")
      let isKnown = known.contains {
        $0.broker == route.to.broker && name.hasPrefix($0.base + "/")
      }
      if isKnown { continue }
      for end in levels.indices.dropFirst() { add(route, levels[..<end]) }
    }
    return found
  }

  /// Reads an announcement; `false` if the message is none.
  mutating func read(_ payload: Span<UInt8>, topic: Span<UInt8>, broker: Int) -> Bool {
    for (place, list, name) in topics
    where announced[place].broker == broker && Bytes.areEqual(topic, name) {
      announced[place].groups.read(list, payload)
      number()
      return true
    }
    return false
  }

  /// Numbers all devices of groups.
  private mutating func number() {
    devices = [:]
    var numbers: [String: Int] = [:]
    for place in announced.indices {
      let found = announced[place].groups.addressesByName.mapValues { addresses in
        Set(
          addresses.map { address in
            let known = numbers["\(place) \(address)"] ?? numbers.count
            numbers["\(place) \(address)"] = known
            return known
          }
        )
      }
      if !found.isEmpty { devices[place] = found }
    }
  }

  /// What a topic reaches; `nil` for one that is no command for a group or a member of one.
  func target(of topic: String, broker: Int) -> Target? {
    guard !isEmpty else { return nil }
    for (place, source) in announced.enumerated()
    where source.broker == broker && topic.hasPrefix(source.base + "/") {
      guard let names = devices[place] else { continue }
      let levels = topic.dropFirst(source.base.count + 1).split(separator: "/")
      guard let set = levels.lastIndex(of: "set"), set > 0, levels.count - set <= 2 else {
        continue
      }
      let property = set + 1 < levels.count ? String(levels[set + 1]) : nil
      if let found = names[levels[..<set].joined(separator: "/")] {
        return Target(devices: found, property: property)
      }
      if set > 1, let found = names[levels[..<(set - 1)].joined(separator: "/")] {
        return Target(devices: found, property: property, isPart: true)
      }
    }
    return nil
  }
}

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

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration
internal import Devices
internal import JSON

/// Converts an imported device to the entries of a device file, without what its profile provides.
enum DeviceFields {
  /// The profiles that importers use.
  ///
  /// Reading them dominates the time of an import.
  private static let profiles: [String: JSONValue] = {
    var profiles: [String: JSONValue] = [:]
    for name in ["light", "cover", "thermostat", "switch", "device"] {
      profiles["zigbee2mqtt/\(name)"] = BuiltInProfile.json("zigbee2mqtt/\(name)")
    }
    return profiles
  }()

  /// The device's keys and values, in the order of the file.
  static func members(of device: ImportedDevice, id: String) -> [JSONValue.Member] {
    var device = device
    var profile = device.profile.flatMap { profiles[$0] }
    var overriding = profile.flatMap { ProfileOverrides.properties(device.properties, profile: $0) }
    if overriding == nil, let plain = device.plainProfile {
      device.profile = plain
      profile = profiles[plain]
      overriding = profile.flatMap { ProfileOverrides.properties(device.properties, profile: $0) }
    }
    let inherited = overriding == nil ? Optional.none : profile
    var members = device.head(id: id)
    if inherited != nil, let profile = device.profile {
      members.append(.init("profile", .string(profile)))
    }
    if let topic = device.topic { members.append(.init("topic", .string(topic))) }
    if let lane = device.lane { members.append(.init("lane", .string(lane))) }
    let merge = JSONValue.boolean(device.merge)
    if merge != inherited?["merge"] ?? false { members.append(.init("merge", merge)) }
    // A property of that name is set like any other.
    let names = device.properties.flatMap(\.names)
    let options =
      device.optionFactors.isEmpty
      ? JSONValue.array(device.options.filter { !names.contains($0) }.map { .string($0) })
      : .object(device.optionFactors)
    if options != inherited?["options"] ?? [] { members.append(.init("options", options)) }
    let availability = JSONValue.array(device.availability)
    if availability != inherited?["availability"] ?? [] {
      members.append(
        .init(
          "availability",
          device.availability.count == 1 ? device.availability[0] : availability
        )
      )
    }
    let properties =
      overriding ?? device.properties.map { JSONValue.Member($0.id, .object($0.fields)) }
    if !properties.isEmpty { members.append(.init("properties", .object(properties))) }
    return members
  }
}

/// Expresses properties as differences from a profile.
enum ProfileOverrides {
  /// The entries of `properties:`; `nil` if they cannot be expressed over this profile.
  static func properties(
    _ own: [ImportedProperty],
    profile: JSONValue
  ) -> [JSONValue.Member]? {
    let inherited = profile["properties"]?.members ?? []
    let ids = own.map { JSONValue.string($0.id) }
    var entries: [JSONValue.Member] = []
    for property in own {
      guard let base = inherited.first(where: { $0.name == property.id })?.value else {
        entries.append(.init(property.id, .object(property.fields)))
        continue
      }
      guard var fields = fields(property.fields, over: base) else { return nil }
      // Another property of the device has the name that the profile gives this one too.
      if property["aliases"] == nil,
        base.elements("aliases")?.contains(where: ids.contains) ?? false
      {
        fields.append(.init("aliases", []))
      }
      if !fields.isEmpty { entries.append(.init(property.id, .object(fields))) }
    }
    // What a profile only reads is not announced as something to set.
    let settable = inherited.filter { $0.value["command"] != nil }
    for member in settable where !own.contains(where: { $0.id == member.name }) {
      entries.append(.init(member.name, "none"))
    }
    // A profile that shares no property with the device does not suit it.
    let removed = entries.count { $0.value == "none" }
    return removed > 0 && removed == settable.count ? nil : entries
  }

  /// Fields of a profile's property that a device file cannot remove.
  private static let permanent = [
    "range", "step", "unit", "values", "on", "off", "scale", "encode", "decode",
  ]
  /// Fields that the device inherits from the profile when the announcement lacks them.
  private static let inheritable = [
    "name", "aliases", "policy", "always", "ends", "excludes", "implies", "display",
  ]

  private static func fields(
    _ own: [JSONValue.Member],
    over base: JSONValue
  ) -> [JSONValue.Member]? {
    var result: [JSONValue.Member] = []
    let stated = Set(own.map(\.name))
    let isSameType = own.first { $0.name == "type" }?.value == base["type"]
    for member in own {
      guard let inherited = base[member.name] else {
        result.append(member)
        continue
      }
      // Fields of another type's property are not inherited.
      if member.value == inherited, isSameType || !permanent.contains(member.name) { continue }
      if ["command", "state"].contains(member.name) {
        result.append(.init(member.name, section(member.value, over: inherited)))
      } else {
        result.append(member)
      }
    }
    for member in base.members ?? [] where !stated.contains(member.name) {
      switch member.name {
      case _ where permanent.contains(member.name):
        if isSameType { return nil }
      case _ where inheritable.contains(member.name): break
      case "urgent": result.append(.init(member.name, []))
      case "command", "confirm", "state": result.append(.init(member.name, "none"))
      default: return nil
      }
    }
    return result
  }

  /// The members of a section that differ; those that only the profile has are switched off.
  private static func section(_ own: JSONValue, over base: JSONValue) -> JSONValue {
    var members = (own.members ?? []).filter { base[$0.name] != $0.value }
    if base["get"] != nil, own["get"] == nil { members.append(.init("get", "none")) }
    if base["payload"] != nil, own["payload"] == nil { members.append(.init("payload", "$value")) }
    if base["value"] != nil, own["value"] == nil { members.append(.init("value", "")) }
    return .object(members)
  }
}

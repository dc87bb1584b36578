// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import Values

/// Reads `scenes:` at the top level of device files, once all devices and groups are known.
extension DeviceDecoder {
  /// The scenes of all files, in order.
  mutating func scenes() -> [Scene] {
    var scenes: [Scene] = []
    for pair in sceneNodes {
      let isValid = checkName(pair, of: "scene")
      guard let scene = scene(pair), isValid else { continue }
      scenes.append(scene)
    }
    return scenes
  }

  private func scene(_ pair: YAMLNode.Pair) -> Scene? {
    let what = "scene '\(Excerpt.of(pair.key))'"
    guard let entries = pair.value.pairs, !entries.isEmpty else {
      problems.add(
        pair.value.position,
        "\(what): found \(pair.value.kindDescription), expected devices and their values, such as "
          + "{desk-lamp: {brightness: 80}}"
      )
      return nil
    }
    var parts: [Scene.Part] = []
    for entry in entries { parts += self.parts(entry, of: what) }
    return Scene(id: pair.key, parts: parts)
  }

  /// The values of one device or group; a group's are those of its members.
  private func parts(_ entry: YAMLNode.Pair, of what: String) -> [Scene.Part] {
    guard let device = devices.first(where: { $0.id == entry.key })?.device else {
      // A device with a mistake is reported already.
      if definition(of: entry.key) == nil {
        problems.add(
          entry.keyPosition,
          "\(what): no device '\(Excerpt.of(entry.key))'",
          suggestion: Suggestion.nearest(to: entry.key, in: devices.map(\.id))
        )
      }
      return []
    }
    guard let values = entry.value.pairs, !values.isEmpty else {
      problems.add(
        entry.value.position,
        "\(what): found \(entry.value.kindDescription), expected values of \(device.id), such as "
          + "{\(device.properties.first?.id ?? "power"): …}"
      )
      return []
    }
    return values.compactMap { part($0, of: device, in: what) }
  }

  private func part(
    _ pair: YAMLNode.Pair,
    of device: Device,
    in what: String
  ) -> Scene.Part? {
    let found = device.properties.first { $0.id == pair.key || $0.aliases.contains(pair.key) }
    guard let property = found else {
      if lacksProperties(device) { return nil }
      problems.add(
        pair.keyPosition,
        "\(what): device '\(device.id)' has no property '\(Excerpt.of(pair.key))'; it has: "
          + Section.list(device.properties.map(\.id)),
        suggestion: Suggestion.nearest(to: pair.key, in: device.properties.map(\.id))
      )
      return nil
    }
    guard let json = pair.value.json(problems) else { return nil }
    do throws(ValidationError) {
      return Scene.Part(key: "\(device.id)/\(property.id)", value: try property.value(from: json))
    } catch {
      problems.add(pair.value.position, "\(what): \(property.id): \(error)")
      return nil
    }
  }
}

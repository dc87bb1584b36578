// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import Values

extension PropertyReader {
  /// What the properties of a device may be called.
  private struct Known {
    let properties: [Property]
    /// The identifiers of all properties, also of those that are removed or have a mistake.
    let declared: [String]
    /// What a property with a mistake may be called.
    let lost: Set<String>
  }

  /// Resolves `ends`, `excludes` and `implies` to identifiers, and makes `excludes` symmetric.
  func relate(
    _ properties: [Property],
    _ sections: [String: Section],
    declared: [String]
  ) -> [Property] {
    guard !isProfileUnknown else { return properties }
    var related = properties
    let failed = declared.filter { name in !properties.contains { $0.id == name } }
    let aliases = failed.flatMap { sections[$0]?["aliases"]?.elements ?? [] }.compactMap(\.text)
    let known = Known(properties: properties, declared: declared, lost: Set(failed + aliases))
    for index in related.indices {
      let id = related[index].id
      guard !related[index].isReadOnly, let section = sections[id] else { continue }
      related[index].ends = names(in: "ends", of: id, section, known)
      warnAboutUnusedEnds(section, related[index])
      related[index].excludes = names(in: "excludes", of: id, section, known)
      related[index].implies = implications(of: id, section, known)
      carryImplied(of: &related[index], section, known)
    }
    // The other mistakes of a property that has one are reported too.
    for name in failed {
      guard let section = sections[name] else { continue }
      for key in ["ends", "excludes"] { _ = names(in: key, of: name, section, known) }
      _ = implications(of: name, section, known)
    }
    for property in related {
      for excluded in property.excludes {
        guard let other = related.firstIndex(where: { $0.id == excluded }),
          !related[other].excludes.contains(property.id)
        else { continue }
        related[other].excludes.append(property.id)
      }
    }
    return related
  }

  /// Reports aliases that already name a property.
  func checkAliases(_ properties: [Property], _ sections: [String: Section]) {
    var taken: [String: String] = [:]
    for property in properties { taken[property.id] = property.id }
    for property in properties {
      for alias in property.aliases {
        if let owner = taken[alias] {
          let node = sections[property.id]?["aliases"]?.elements?.first { $0.text == alias }
          problems.add(
            node?.position ?? placeholders.device,
            "aliases: '\(alias)' already names property '\(owner)'"
          )
        } else {
          taken[alias] = property.id
        }
      }
    }
  }

  /// Warns about `ends` without `urgent`, because only an urgent value ends other commands.
  ///
  /// A profile's `ends` is accepted where a device overrides `urgent` with an empty list.
  private func warnAboutUnusedEnds(_ section: Section, _ property: Property) {
    guard let node = section["ends"], node.elements?.isEmpty == false else { return }
    func layer(of key: String) -> Int? {
      section.layers.firstIndex { $0[key] != nil }
    }
    if let urgent = section["urgent"] {
      guard urgent.elements?.isEmpty == true, let own = layer(of: "ends"),
        let off = layer(of: "urgent"), own <= off
      else { return }
    }
    problems.warn(
      node.position,
      "ends: has no effect, because '\(Excerpt.of(property.id))' has no 'urgent' values: only an urgent "
        + "value ends other commands; allowed: 'urgent' with a list of values of its type"
    )
  }

  private func names(
    in key: String,
    of property: String,
    _ section: Section,
    _ known: Known
  ) -> [String] {
    var names: [String] = []
    for word in section.words(key) ?? [] {
      // A read-only property has no commands to end or to exclude.
      if let other = other(word.text, at: word.node.position, in: key, of: property, known),
        !other.isReadOnly, !names.contains(other.id)
      {
        names.append(other.id)
      }
    }
    return names
  }

  private func implications(
    of property: String,
    _ section: Section,
    _ known: Known
  ) -> [Implication] {
    guard let node = section["implies"] else { return [] }
    guard let pairs = node.pairs else {
      return section.reject(
        node,
        "implies",
        expected: "properties with the values that they take, such as {power: true}"
      ) ?? []
    }
    var implied: [Implication] = []
    for pair in pairs {
      let position = pair.keyPosition
      guard let other = other(pair.key, at: position, in: "implies", of: property, known) else {
        continue
      }
      if other.isAction {
        problems.add(
          position,
          "implies: '\(Excerpt.of(pair.key))' is an action, which has no value; "
            + "allowed: properties of other types"
        )
      } else if implied.contains(where: { $0.property == other.id }) {
        problems.add(position, "implies: '\(Excerpt.of(other.id))' is listed twice")
      } else if let value = value(pair.value, of: other) {
        implied.append(Implication(property: other.id, value: value))
      }
    }
    return implied
  }

  /// Resolves `$implies/…` in the payload, and reports what names no implied value.
  private func carryImplied(of property: inout Property, _ section: Section, _ known: Known) {
    let names = property.command.payload.impliedNames
    guard !names.isEmpty, let node = section["command"] else { return }
    var carried: [String: PayloadTemplate.Carried] = [:]
    for name in names {
      guard let other = other(name, at: node.position, in: "payload", of: property.id, known) else {
        continue
      }
      if let implication = property.implies.first(where: { $0.property == other.id }) {
        carried[name] = PayloadTemplate.Carried(implication, of: property, for: other)
      } else if section["implies"] == nil {
        let name = Excerpt.of(name)
        problems.add(
          node.position,
          "payload: '$implies/\(name)' is not implied; add 'implies: {\(name): …}'"
        )
      }
    }
    property.command.payload = property.command.payload.carrying(carried)
  }

  /// The value that `implies` states for another property.
  private func value(_ node: YAMLNode, of other: Property) -> Value? {
    do throws(ValidationError) {
      guard let json = node.scalarJSON else {
        throw .wrongType(found: node.kindDescription, expected: "a value", suggestion: nil)
      }
      return try other.kind.value(from: json)
    } catch {
      problems.add(node.position, "implies: \(ValidationError.inProperty(other.id, error))")
      return nil
    }
  }

  /// The other property that `key` names; reports a name that is none.
  ///
  /// - Returns: `nil` also for a property that is removed, or has a mistake that is reported.
  private func other(
    _ name: String,
    at position: SourcePosition,
    in key: String,
    of property: String,
    _ known: Known
  ) -> Property? {
    let found = known.properties.first { $0.id == name || $0.aliases.contains(name) }
    if (found?.id ?? name) == property {
      let others = known.declared.filter { $0 != property }
      problems.add(
        position,
        "\(key): '\(Excerpt.of(name))' is this property; allowed: "
          + (others.isEmpty ? "other properties, but the device has none" : Section.list(others))
      )
      return nil
    }
    if found == nil, !known.declared.contains(name), !known.lost.contains(name) {
      problems.add(
        position,
        "\(key): the device has no property '\(Excerpt.of(name))'; it has: "
          + Section.list(known.declared),
        suggestion: Suggestion.nearest(to: name, in: known.declared)
      )
    }
    return found
  }
}

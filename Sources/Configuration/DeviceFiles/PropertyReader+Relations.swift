// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import Values

extension PropertyReader {
  /// Resolves `ends` and `excludes` to identifiers, and makes `excludes` symmetric.
  func relate(
    _ properties: [Property],
    _ sections: [String: Section],
    declared: [String]
  ) -> [Property] {
    guard !isProfileUnknown else { return properties }
    var related = properties
    let failed = declared.filter { name in !properties.contains { $0.id == name } }
    // What a property with a mistake may be called.
    let aliases = failed.flatMap { sections[$0]?["aliases"]?.elements ?? [] }.compactMap(\.text)
    let lost = Set(failed + aliases)
    func names(in key: String, _ section: Section, _ id: String) -> [String] {
      self.names(in: key, of: id, section, properties, declared, lost)
    }
    for index in related.indices {
      guard !related[index].isReadOnly, let section = sections[related[index].id] else { continue }
      related[index].ends = names(in: "ends", section, related[index].id)
      warnAboutUnusedEnds(section, related[index])
      related[index].excludes = names(in: "excludes", section, related[index].id)
    }
    // Of a property with a mistake the others are reported too.
    for name in failed {
      for key in ["ends", "excludes"] { _ = sections[name].map { names(in: key, $0, name) } }
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
      section.layers.firstIndex { $0.pairs?.contains { $0.key == key } ?? false }
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
    _ properties: [Property],
    _ declared: [String],
    _ lost: Set<String>
  ) -> [String] {
    var names: [String] = []
    for word in section.words(key) ?? [] {
      let found = properties.first { $0.id == word.text || $0.aliases.contains(word.text) }
      if (found?.id ?? word.text) == property {
        let others = declared.filter { $0 != property }
        problems.add(
          word.node.position,
          "\(key): '\(Excerpt.of(word.text))' is this property; allowed: "
            + (others.isEmpty ? "other properties, but the device has none" : Section.list(others))
        )
      } else if let found {
        // A read-only property has no commands to end or to exclude.
        if !found.isReadOnly, !names.contains(found.id) { names.append(found.id) }
      } else if !declared.contains(word.text), !lost.contains(word.text) {
        // A declared but absent property is removed, or has a mistake that is already reported.
        problems.add(
          word.node.position,
          "\(key): the device has no property '\(Excerpt.of(word.text))'; it has: "
            + Section.list(declared),
          suggestion: Suggestion.nearest(to: word.text, in: declared)
        )
      }
    }
    return names
  }
}

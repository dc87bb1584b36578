// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices

/// The profiles that devices may name: those in the binary, and those beside the device files.
///
/// What is in the binary is read when it is first named.
final class ProfileStore {
  /// One profile and where its file says so.
  struct Profile {
    let name: String
    let node: YAMLNode
  }

  private let problems: Problems
  private var profiles: [String: YAMLNode] = [:]
  /// Profiles from files beside the devices; those in the binary do not replace them.
  private var overridden: Set<String> = []
  private var pending: [(name: String, bytes: [UInt8])]

  init(problems: Problems) {
    self.problems = problems
    pending = EmbeddedProfiles.files
  }

  /// Takes the profiles of a file beside the device files.
  func add(_ root: YAMLNode) {
    for pair in root.pairs ?? [] where isMapping(pair) {
      checkProperties(pair.value)
      if overridden.insert(pair.key).inserted {
        profiles[pair.key] = pair.value
      } else {
        problems.add(
          pair.keyPosition,
          "profile '\(Excerpt.of(pair.key))' is already in another file"
        )
      }
    }
  }

  /// The names of all profiles.
  var names: [String] {
    loadEmbedded { _ in true }
    return profiles.keys.sorted()
  }

  /// The profile called `name` and those it builds on, the strongest first.
  ///
  /// `nil`, with a problem, when there is none of that name or when they build on each other.
  func chain(from name: String, at position: SourcePosition) -> [Profile]? {
    var chain: [Profile] = []
    var next: (name: String, position: SourcePosition)? = (name, position)
    while let (name, position) = next {
      guard let node = find(name) else {
        problems.add(
          position,
          "unknown profile '\(Excerpt.of(name))'; known: \(alternatives(to: name))",
          suggestion: Suggestion.nearest(to: name, in: names)
        )
        return nil
      }
      guard !chain.contains(where: { $0.name == name }) else {
        problems.add(position, "profile '\(Excerpt.of(name))' builds on itself")
        return nil
      }
      chain.append(Profile(name: name, node: node))
      next = node.pairs?.first { $0.key == "profile" }
        .flatMap { pair in pair.value.text.map { ($0, pair.value.position) } }
    }
    return chain
  }

  /// The profiles of the same convention, or else the conventions.
  private func alternatives(to name: String) -> String {
    let convention = name.prefix { $0 != "/" } + "/"
    let related = names.filter { $0.hasPrefix(convention) }
    if !related.isEmpty { return Section.list(related) }
    let conventions = names.map { name in
      name.contains("/") ? name.prefix { $0 != "/" } + "/…" : name
    }
    return Section.list(Set(conventions).sorted())
  }

  private func find(_ name: String) -> YAMLNode? {
    if let known = profiles[name] { return known }
    let convention = name.prefix { $0 != "/" }
    loadEmbedded { $0 == convention }
    return profiles[name]
  }

  private func loadEmbedded(where isWanted: (String) -> Bool) {
    let wanted = pending.filter { isWanted($0.name) }
    pending.removeAll { isWanted($0.name) }
    for file in wanted {
      let root = YAMLReader.read(
        file.bytes,
        file: "built-in profiles/\(file.name).yaml",
        problems: problems
      )
      for pair in root?.pairs ?? [] where !overridden.contains(pair.key) {
        profiles[pair.key] = pair.value
      }
    }
  }

  /// Reports unknown keys in a profile that perhaps no device uses.
  private func checkProperties(_ profile: YAMLNode) {
    let properties = profile.pairs?.first { $0.key == "properties" }?.value
    for property in properties?.pairs ?? [] {
      Section.checkKeys(property.value.pairs ?? [], .property, problems)
      for (key, table) in [("command", KeyTable.command), ("confirm", .confirm)] {
        let node = property.value.pairs?.first { $0.key == key }?.value
        Section.checkKeys(node?.pairs ?? [], table, problems)
      }
    }
  }

  private func isMapping(_ pair: YAMLNode.Pair) -> Bool {
    Section(pair.value, .profile, problems, what: "profile '\(Excerpt.of(pair.key))'") != nil
  }
}

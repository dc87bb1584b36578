// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
import Values

/// The profiles that devices can use: those in the binary, and those beside the device files.
///
/// An embedded file is parsed when one of its profiles is first used.
final class ProfileStore {
  /// One profile and its node in a file.
  struct Profile {
    let name: String
    let node: YAMLNode
  }

  private let problems: Problems
  private var profiles: [String: YAMLNode] = [:]
  /// The names of profiles beside the device files, which override embedded ones.
  private var overridden: Set<String> = []
  private var pending: [(name: String, bytes: [UInt8])]

  init(problems: Problems) {
    self.problems = problems
    pending = EmbeddedProfiles.files
  }

  /// Adds the profiles of a file beside the device files.
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

  /// The names of all profiles; parses every embedded file.
  var names: [String] {
    loadEmbedded { _ in true }
    return profiles.keys.sorted()
  }

  /// The profile called `name` and the profiles that it builds on, the strongest first.
  ///
  /// Reports an unknown name or a cycle and returns `nil`.
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
      next = node["profile"].flatMap { base in base.text.map { ($0, base.position) } }
    }
    return chain
  }

  /// The names of the profiles of the same convention, or else of all conventions.
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

  /// Reports unknown keys in a profile, even if no device uses it.
  private func checkProperties(_ profile: YAMLNode) {
    for property in profile["properties"]?.pairs ?? [] {
      Section.checkKeys(property.value.pairs ?? [], .property, problems)
      for (key, table) in [("command", KeyTable.command), ("confirm", .confirm)] {
        Section.checkKeys(property.value[key]?.pairs ?? [], table, problems)
      }
    }
  }

  private func isMapping(_ pair: YAMLNode.Pair) -> Bool {
    Section(pair.value, .profile, problems, what: "profile '\(Excerpt.of(pair.key))'") != nil
  }
}

/// The content of built-in profiles, for programs that write device files.
package enum BuiltInProfile {
  /// The profile called `name` with its YAML aliases expanded; `nil` if there is none.
  package static func json(_ name: String) -> JSONValue? {
    let problems = Problems()
    let store = ProfileStore(problems: problems)
    guard let chain = store.chain(from: name, at: .whole("")), chain.count == 1 else {
      return nil
    }
    return chain[0].node.json(problems)
  }
}

/// The files of `devices/profiles/`, embedded in the binary.
enum EmbeddedProfiles {
  /// Each convention, which is the prefix of its profiles' names, and its file's bytes.
  static var files: [(name: String, bytes: [UInt8])] {
    [
      ("zigbee2mqtt", PackageResources.zigbee2mqtt_yaml),
      ("tasmota", PackageResources.tasmota_yaml),
      ("shelly", PackageResources.shelly_yaml),
      ("esphome", PackageResources.esphome_yaml),
      ("wled", PackageResources.wled_yaml),
      ("zwave-js", PackageResources.zwave_js_yaml),
      ("homie", PackageResources.homie_yaml),
      ("homeassistant", PackageResources.homeassistant_yaml),
      ("frigate", PackageResources.frigate_yaml),
      ("evcc", PackageResources.evcc_yaml),
      ("opendtu", PackageResources.opendtu_yaml),
      ("victron", PackageResources.victron_yaml),
    ]
  }
}

/// The built-in profiles, for people who look for one.
package enum ProfileListing {
  /// One profile, with what it takes from the profile that it builds on.
  package struct Entry: Sendable {
    package var name: String
    package var description: String?
    /// The profile that it builds on.
    package var base: String?
    /// Names of parameters that a device may set.
    package var parameters: [String]
    /// Properties in order of definition, the profile's own first.
    package var properties: [Property]
  }

  /// One property of a profile.
  package struct Property: Sendable {
    package var id: String
    package var type: String
    /// The range, or the words, as the profile states them.
    package var allowed: String
    package var command: String
  }

  /// The names of all built-in profiles, sorted.
  package static var names: [String] { ProfileStore(problems: Problems()).names }

  /// All built-in profiles, sorted by name.
  package static var all: [Entry] {
    let store = ProfileStore(problems: Problems())
    return store.names.compactMap { entry($0, in: store) }
  }

  /// The profile called `name`; `nil` if there is none.
  package static func entry(_ name: String) -> Entry? {
    entry(name, in: ProfileStore(problems: Problems()))
  }

  private static func entry(_ name: String, in store: ProfileStore) -> Entry? {
    guard let chain = store.chain(from: name, at: .whole("")), let own = chain.first else {
      return nil
    }
    var entry = Entry(
      name: name,
      description: own.node["description"]?.text,
      base: own.node["profile"]?.text,
      parameters: [],
      properties: []
    )
    for profile in chain {
      let parameters = profile.node["parameters"]?.pairs?.map(\.key) ?? []
      entry.parameters += parameters.filter { !entry.parameters.contains($0) }
      for pair in profile.node["properties"]?.pairs ?? []
      where !entry.properties.contains(where: { $0.id == pair.key }) {
        let nodes = chain.compactMap { $0.node["properties"]?[pair.key] }
        entry.properties.append(property(pair.key, nodes))
      }
    }
    return entry
  }

  /// A property; `nodes` are what the profiles of the chain say of it, the strongest first.
  private static func property(_ id: String, _ nodes: [YAMLNode]) -> Property {
    func first(_ key: String) -> YAMLNode? { nodes.lazy.compactMap { $0[key] }.first }
    let range = first("range")?.elements.map { $0.compactMap(\.text).joined(separator: " to ") }
    let words = first("values")?.elements.map { $0.compactMap(\.text).joined(separator: ", ") }
    let topic = nodes.lazy.compactMap { $0["command"]?["topic"]?.text }.first
    return Property(
      id: id,
      type: first("type")?.text ?? "",
      allowed: range ?? words ?? "",
      command: topic ?? ""
    )
  }
}

extension ProfileListing.Entry {
  package var json: JSONValue {
    .object([
      "name": .string(name), "description": description.map { .string($0) } ?? .null,
      "profile": base.map { .string($0) } ?? .null,
      "parameters": .array(parameters.map { .string($0) }),
      "properties": .array(
        properties.map {
          .object([
            "id": .string($0.id), "type": .string($0.type), "allowed": .string($0.allowed),
            "command": .string($0.command),
          ])
        }
      ),
    ])
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

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

extension YAMLNode {
  /// The value of a mapping's entry.
  fileprivate subscript(key: String) -> YAMLNode? { pairs?.first { $0.key == key }?.value }
}

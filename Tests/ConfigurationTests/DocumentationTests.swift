// Settle
// SPDX-License-Identifier: Apache-2.0

@testable import Configuration
import Devices
import FoundationEssentials
import Testing

/// The decoder, the JSON schemas and the documentation have the same keys.
struct DocumentationTests {
  private static func text(_ path: String) throws -> String {
    try String(contentsOf: URL(filePath: Loading.root + "/" + path), encoding: .utf8)
  }

  /// Reads JSON with the YAML reader.
  private static func schema(_ name: String) throws -> YAMLNode {
    let problems = Problems()
    let root = YAMLReader.read(
      Array(try text("config/\(name).schema.json").utf8),
      file: name,
      problems: problems
    )
    try #require(problems.errors.isEmpty)
    return try #require(root)
  }

  /// The node at a path of keys; a number picks an element.
  private static func node(_ root: YAMLNode, _ path: String) throws -> YAMLNode {
    var node = root
    for key in path.split(separator: "/") {
      if let index = Int(key) {
        node = try #require(node.elements)[index]
      } else {
        let pair = try #require(node.pairs).first { $0.key == key }
        node = try #require(pair, "no \(key) in \(path)").value
      }
    }
    return node
  }

  @Test func `settle schema prints the schemas of the repository`() throws {
    #expect(Schema.settings == Array(try Self.text("config/settle.schema.json").utf8))
    #expect(Schema.devices == Array(try Self.text("config/devices.schema.json").utf8))
  }

  private static let positions: [(KeyTable, String, String)] = [
    (.settings, "settle", ""),
    (.mqtt, "settle", "properties/mqtt"),
    (.broker, "settle", "properties/brokers/additionalProperties"),
    (.policies, "settle", "properties/policy"),
    (.policyFields, "settle", "$defs/policy/oneOf/1"),
    (.http, "settle", "properties/http"),
    (.journal, "settle", "properties/journal"),
    (.cluster, "settle", "properties/cluster"),
    (.shutdown, "settle", "properties/shutdown"),
    (.lane, "settle", "properties/lanes/additionalProperties"),
    (
      .window, "settle",
      "properties/lanes/additionalProperties/properties/window/oneOf/2"
    ),
    (.busy, "settle", "properties/lanes/additionalProperties/properties/busy"),
    (.route, "settle", "properties/routes/items"),
    (.routeEnd, "settle", "properties/routes/items/properties/from/oneOf/1"),
    (.input, "settle", "properties/inputs/items"),
    (
      .inputChange, "settle",
      "properties/inputs/items/properties/map/additionalProperties"
    ),
    (.discovery, "settle", "properties/discovery"),
    (.importing, "settle", "properties/import/oneOf/1"),
    (.limits, "settle", "properties/limits"),
    (.device, "devices", "$defs/device"),
    (.details, "devices", "$defs/device/properties/device"),
    (.profile, "devices", "$defs/profile"),
    (.property, "devices", "$defs/property"),
    (.policyFields, "devices", "$defs/property/properties/policy/oneOf/1"),
    (.command, "devices", "$defs/property/properties/command/oneOf/1"),
    (.state, "devices", "$defs/property/properties/state/oneOf/1"),
    (.stateGet, "devices", "$defs/property/properties/state/oneOf/1/properties/get/oneOf/1"),
    (.scale, "devices", "$defs/property/properties/scale/oneOf/1"),
    (.display, "devices", "$defs/property/properties/display/oneOf/1"),
    (.decode, "devices", "$defs/property/properties/decode/anyOf/1"),
    (.confirm, "devices", "$defs/property/properties/confirm/oneOf/1"),
    (.availability, "devices", "$defs/device/properties/availability/oneOf/1"),
    (.awake, "devices", "$defs/device/properties/awake/oneOf/1"),
    (.group, "devices", "properties/groups/additionalProperties"),
  ]

  @Test(arguments: positions)
  func `the schema has exactly the accepted keys`(
    table: KeyTable,
    schema: String,
    path: String
  ) throws {
    let place = try Self.node(Self.schema(schema), path)
    let properties = try Self.node(place, "properties")
    #expect(properties.pairs?.map(\.key).sorted() == table.keys.sorted())
    #expect(try Self.node(place, "additionalProperties").text == "false")
  }

  @Test func `every section of the files is in a schema`() {
    #expect(Set(Self.positions.map(\.0)) == Set(KeyTable.allCases))
  }

  /// The keys in the tables of keys: the last part of `journal.path`.
  private static func documentedKeys() throws -> Set<String> {
    var keys: Set<String> = []
    var column: Int?
    for line in try text("docs/configuration.md").split(
      separator: "\n",
      omittingEmptySubsequences: false
    ) {
      guard line.hasPrefix("|") else {
        column = nil
        continue
      }
      let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst()
      if let column {
        let marked = Array(cells)[column].split(
          separator: "`",
          omittingEmptySubsequences: false
        )
        for (position, part) in marked.enumerated() where position % 2 == 1 {
          keys.insert(String(part.split(separator: ".").last ?? ""))
        }
      } else {
        column = cells.firstIndex(of: " key ").map { $0 - cells.startIndex }
      }
    }
    return keys
  }

  @Test func `the documentation has exactly the accepted keys`() throws {
    let documented = try Self.documentedKeys()
    // These are documented in a sentence or within another cell.
    let inText: Set<KeyTable> = [.inputChange, .routeEnd, .stateGet]
    let tables = KeyTable.allCases.filter { !inText.contains($0) }
    #expect(documented == Set(tables.flatMap(\.keys)))
  }

  @Test func `the documentation names every variable and every profile`() throws {
    let text = try Self.text("docs/configuration.md")
    for variable in EnvironmentOverrides.variables {
      #expect(text.contains("| `\(variable)` |"), "\(variable)")
    }
    for profile in ProfileStore(problems: Problems()).names {
      #expect(text.contains("`\(profile)`"), "\(profile)")
    }
  }

  @Test func `the documented custom profile works`() throws {
    let blocks = try Self.text("docs/configuration.md").split(separator: "```yaml\n").map {
      String($0.prefix(upTo: $0.firstRange(of: "```")?.lowerBound ?? $0.endIndex))
    }
    let profile = try #require(blocks.first { $0.hasPrefix("# devices/profiles/heating.yaml") })
    let devices = try #require(blocks.first { $0.hasPrefix("# devices/house.yaml") })
    let (outcome, folder) = try Loading.run(devices: [
      "house.yaml": devices, "profiles/heating.yaml": profile,
    ])
    guard case .loaded(let loaded) = outcome else {
      Issue.record("The documented profile has mistakes in \(folder.path).")
      return
    }
    #expect(
      loaded.registry.properties.map(\.property.command.topic) == ["heating/upstairs/3/set"]
    )
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration
internal import Devices

/// The devices that the files define before an import, and which import wrote them.
struct DefinedDevices {
  /// The files that earlier imports wrote, without those that are empty.
  private(set) var outlines: [ImportSource: YAMLOutline] = [:]
  /// The identifiers in these files.
  private var imported: [ImportSource: Set<String>] = [:]
  private let all: Set<String>
  /// The identifiers of the devices that are set by a topic.
  private var commands: [String: [String]] = [:]
  /// The identifiers of the devices that report on a topic.
  private var reports: [String: [String]] = [:]

  /// `devices` are those of all files, and `present` has the files of earlier imports in `folder`.
  ///
  /// - Throws: ``ConfigurationFailure`` for YAML errors in one of these files.
  init(
    _ devices: Registry,
    present: [ImportSource: ImportPlan.ExistingFile],
    folder: String
  ) throws(ConfigurationFailure) {
    all = Set(devices.devices.map(\.id))
    for property in devices.properties where !property.isRetired {
      let id = devices.id(ofDevice: property.device)
      if !property.commandTopic.isEmpty { commands[property.commandTopic, default: []].append(id) }
      for state in property.states { reports[state.topic, default: []].append(id) }
    }
    for source in ImportSource.allCases {
      guard let bytes = present[source]?.file else { continue }
      let path = ImportPlan.path(source.fileName, in: folder)
      guard let outline = try YAMLOutline.read(bytes, file: path) else { continue }
      outlines[source] = outline
      let entries = (outline.entries ?? []) + (outline["groups"]?.entries ?? [])
      imported[source] = Set(entries.map(\.key))
    }
  }

  /// The identifiers in all files but that of `source`.
  func identifiers(beside source: ImportSource) -> Set<String> {
    let others = imported.filter { $0.key != source }.values.reduce(into: Set()) {
      $0.formUnion($1)
    }
    return all.subtracting(imported[source] ?? []).union(others)
  }

  /// The device of another file that has the topics of an announced one; `nil` if there is none.
  ///
  /// A device that is not `isNew` is in the file of `source` already. There it stays, unless the
  /// other file is one that people write.
  func owner(of device: ImportedDevice, isNew: Bool, from source: ImportSource) -> String? {
    let own = imported[source] ?? []
    let strangers = isNew ? own : imported.values.reduce(into: own) { $0.formUnion($1) }
    func first(of topics: [String], in owners: [String: [String]]) -> String? {
      topics.lazy.compactMap { owners[$0]?.last { !strangers.contains($0) } }.first
    }
    let topics = device.commandTopics
    if let owner = first(of: topics, in: commands) { return owner }
    // A device that cannot be set is known by its reports.
    return topics.isEmpty ? first(of: device.stateTopics, in: reports) : nil
  }

  /// Whether a device is set by this topic, or reports on it.
  func has(topic: String) -> Bool { commands[topic] != nil || reports[topic] != nil }
}

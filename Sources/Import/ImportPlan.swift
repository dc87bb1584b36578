// Settle
// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Devices
import JSON
internal import Routing

/// The result of an import: the new content of device files, and diagnostics.
///
/// A plan depends only on the announcements, the current files and the settings; it does no I/O.
package struct ImportPlan: Sendable {
  /// One device file.
  package struct File: Sendable {
    package let source: ImportSource
    package let path: String
    package let old: [UInt8]?
    package let new: [UInt8]
    /// The path of the record of this import.
    package let recordPath: String
    package let record: [UInt8]
    let oldRecord: [UInt8]?
    /// The number of devices in the file.
    package fileprivate(set) var devices: Int
    /// The number of groups in the file.
    package fileprivate(set) var groups: Int
    /// The number of properties of these devices and groups, those of profiles included.
    package fileprivate(set) var properties = 0
    package let changes: [ImportChange]
    /// The identifiers of the devices and groups that this import writes.
    let ids: [String]

    package var isChanged: Bool { old != new }

    /// Writes the file and then the record, each if it changes.
    ///
    /// - Throws: ``FileError`` when a file cannot be written, or was edited since it was read.
    package func write() throws(FileError) {
      if isChanged { try AtomicFile.write(new, to: path, replacing: old) }
      guard record != oldRecord else { return }
      try AtomicFile.write(record, to: recordPath, replacing: oldRecord)
    }

    /// Writes the file and the record, where neither exists yet; both or none.
    ///
    /// - Throws: ``FileError`` when one exists or cannot be written.
    package func create() throws(FileError) {
      try AtomicFile.create(new, at: path)
      do throws(FileError) {
        try AtomicFile.create(record, at: recordPath)
      } catch {
        AtomicFile.remove(path)
        throw error
      }
    }
  }

  /// The options of an import.
  package struct Request: Sendable {
    /// Home Assistant's discovery prefix.
    package var prefix = "homeassistant"
    package var sources = Set(ImportSource.allCases)
    /// Whether readings about the devices themselves become properties, such as signal strengths.
    package var includesDiagnostic = false
    /// The base topic of the Zigbee2MQTT to import; `nil` for all that are announced.
    package var base: String?
    /// Whether Shelly devices are asked to announce themselves.
    package var asksShelly = false
    /// The gateway's base topic; its own announcements are ignored.
    package var ownBase = "settle"
    /// Base topics that routes listen on, with the base topics that they publish to.
    package var displaced: [String: String] = [:]
    /// The lanes in the settings.
    package var lanes: Set<String> = []
    /// Where editors find the schema of device files, as new files name it; `nil` for nowhere.
    package var schema: String?
    /// Whether the gateway imports by itself: nobody has read what commands would control a bridge.
    package var isUnattended = false

    package init() {}

    /// The options that follow from the settings, for device files in `folder` if some are written.
    package init(_ settings: GatewayConfiguration, folder: String? = nil) {
      if let prefix = settings.discovery?.prefix { self.prefix = prefix }
      ownBase = settings.baseTopic
      lanes = Set(settings.lanes.keys)
      schema = folder.flatMap { SchemaPlace.find(forFilesIn: $0, program: SchemaPlace.program) }
      recordRoutes(settings.routes)
    }

    /// Records the routes between the base topics of Zigbee2MQTT.
    mutating func recordRoutes(_ routes: [RouteConfiguration]) {
      for route in routes where route.from.broker == nil && route.to.broker == nil {
        guard let from = route.from.topic.stem(before: "/+/set"),
          let to = route.to.topic.stem(before: "/+/set")
        else { continue }
        displaced[from] = to
      }
    }

    /// Whether the Zigbee2MQTT at a base topic is imported.
    func wants(base: String) -> Bool {
      sources.contains(.zigbee2mqtt) && (self.base == nil || self.base == base)
    }

    /// The option that leaves out a Zigbee2MQTT.
    var restriction: String {
      if isUnattended { return "'import.sources'" }
      return sources.contains(.zigbee2mqtt) ? "--base" : "--only"
    }

    /// The topic filters of all Zigbee2MQTT, whose entities are none of Home Assistant's own.
    package var bridgeFilters: [String] {
      guard sources.contains(.homeassistant), !sources.contains(.zigbee2mqtt) || base != nil else {
        return []
      }
      return ["+/bridge/devices", "+/+/bridge/devices"]
    }

    /// Whether a message announces something to import.
    package func includes(_ announcement: Announcement) -> Bool {
      filters.contains { Topic.matches(filter: $0, name: announcement.topic) }
    }

    /// The topic filters of announcements.
    package var filters: [String] {
      var filters: [String] = []
      if sources.contains(.zigbee2mqtt) {
        // Without `base`, only base topics of one or two levels are found.
        for base in base.map({ [$0] }) ?? ["+", "+/+"] {
          filters += ["\(base)/bridge/devices", "\(base)/bridge/groups"]
        }
      }
      if sources.contains(.homeassistant) {
        filters += ["\(prefix)/+/+/config", "\(prefix)/+/+/+/config"]
      }
      if sources.contains(.homie) { filters.append("+/5/+/$description") }
      if sources.contains(.shelly) { filters += ShellyQuestions.filters }
      if sources.contains(.tasmota) { filters += TasmotaReader.filters }
      return filters
    }
  }

  /// A device file and its record on disk.
  package struct ExistingFile: Sendable {
    package var file: [UInt8]?
    package var record: [UInt8]?
  }

  package private(set) var files: [File] = []
  package private(set) var diagnostics: [ImportDiagnostic] = []
  /// The groups that are announced, and all of whose members are in device files.
  package private(set) var bridgeGroups: [BridgeGroup] = []
  private let schema: String?

  /// Creates the plan.
  ///
  /// Messages other than announcements are ignored; the order of messages does not matter. `folder`
  /// is the folder of device files, `present` has the files of earlier imports, and `devices` the
  /// devices of these and all other files; `templates` are of devices that appear with their first
  /// message. `rejected` has the devices with mistakes, by identifier, and the reason for each.
  ///
  /// - Throws: ``ConfigurationFailure`` for YAML errors in a file of an earlier import.
  package init(
    _ announcements: [Announcement],
    request: Request,
    folder: String,
    present: [ImportSource: ExistingFile],
    devices: Registry,
    templates: [DeviceTemplate] = [],
    rejected: [String: String] = [:]
  ) throws(ConfigurationFailure) {
    schema = request.schema
    let defined = try DefinedDevices(
      devices,
      templates: templates,
      present: present,
      folder: folder
    )
    let found = AnnouncedSources(announcements, request: request, defined: defined)
    diagnostics += found.diagnostics
    var planned: Set<String> = []
    for source in ImportSource.allCases {
      guard let findings = found.findings[source] else { continue }
      diagnostics += findings.diagnostics
      let record = ImportRecord(of: present[source])
      let known = Self.identifiers(record, findings.devices, in: defined.outlines[source])
      var devices: [ImportedDevice] = []
      var owners: [String: String] = [:]
      for var device in findings.devices {
        let isNew = (known[device.identity] ?? record.groupIdentifiers[device.identity]) == nil
        if let owner = defined.owner(of: device, isNew: isNew, from: source) {
          owners[device.identity] = owner
          diagnostics.report(
            .leftOut,
            PlainText.clean(device.name, limit: 80),
            "already in another device file, as '\(owner)'"
          )
        } else if !request.isUnattended {
          devices.append(device)
          warnOfBridgeTopics(device)
        } else if refuseBridgeTopics(of: &device, record.properties(of: known[device.identity])) {
          devices.append(device)
        }
      }
      let groups = ImportedGroups(
        all: findings.devices,
        owners: owners,
        rejected: rejected,
        record: record
      )
      var numbering = DeviceNumbering(
        known: known.merging(record.groupIdentifiers) { id, _ in id },
        taken: defined.identifiers(beside: source).union(planned)
      )
      let sorted = groups.sorted(devices, known: known, &numbering)
      planned.formUnion((sorted.devices + sorted.groups).map(\.id))
      add(source, sorted, folder, present[source], defined.outlines[source], rejected)
    }
  }

  /// Warns of a device whose commands control a bridge, such as
  /// `zigbee2mqtt/bridge/request/permit_join`.
  private mutating func warnOfBridgeTopics(_ device: ImportedDevice) {
    for topic in device.commandTopics.sorted() where BridgeTopic.isCommand(topic) {
      diagnostics.report(
        .controlsBridge,
        PlainText.clean(device.name, limit: 80),
        "commands to '\(PlainText.clean(topic, limit: 200))' control a bridge, not a device;"
          + " remove the property if you do not want that"
      )
    }
  }

  /// Removes the properties whose commands control a bridge, except those in `known`.
  ///
  /// - Returns: Whether a property is left.
  private mutating func refuseBridgeTopics(
    of device: inout ImportedDevice,
    _ known: Set<String>
  ) -> Bool {
    for id in device.removeProperties(whoseCommands: BridgeTopic.isCommand, except: known) {
      diagnostics.report(
        .refused,
        "\(PlainText.clean(device.name, limit: 80)): \(id)",
        "its commands control a bridge, not a device; settle import adds it"
      )
    }
    return !device.properties.isEmpty
  }

  /// Adds the file of one source; `outline` is that of the file `present`.
  private mutating func add(
    _ source: ImportSource,
    _ sorted: ImportedGroups.Sorted,
    _ folder: String,
    _ present: ExistingFile?,
    _ outline: YAMLOutline?,
    _ rejected: [String: String]
  ) {
    let path = FilePath.join(folder, source.fileName)
    let record = ImportRecord(of: present)
    if let bytes = present?.record, ImportRecord(bytes) == nil {
      diagnostics.report(
        .partly,
        FilePath.join(folder, source.recordName),
        "cannot be read, so everything in the file counts as edited by hand"
      )
    }
    diagnostics += sorted.diagnostics
    bridgeGroups += sorted.bridgeGroups
    let old = present?.file
    let written = usable(sorted.devices, rejected)
    let writtenGroups = usable(sorted.groups, rejected)
    if old == nil, written.isEmpty { return }
    var new: [UInt8]
    var changes: [ImportChange] = []
    if let old {
      do throws(Rejection) {
        let merge = try FileMerge(
          old,
          root: outline,
          record: record,
          devices: written,
          groups: writtenGroups,
          announced: Set((sorted.devices + sorted.groups).map(\.id))
        )
        (new, changes) = (merge.result, merge.changes)
        diagnostics += merge.diagnostics
      } catch {
        diagnostics.report(.refused, path, error.reason)
        return
      }
    } else {
      let text = ImportedFile.text(written, groups: writtenGroups, source: source, schema: schema)
      new = Array(text.utf8)
      changes = (written + writtenGroups).map { ImportChange(.added, $0.id) }
    }
    files.append(
      File(
        source: source,
        path: path,
        old: old,
        new: new,
        recordPath: FilePath.join(folder, source.recordName),
        record: Self.record(written, writtenGroups, after: record).bytes,
        oldRecord: present?.record,
        devices: written.count,
        groups: writtenGroups.count,
        changes: changes,
        ids: (written + writtenGroups).map(\.id)
      )
    )
  }

  /// Writes every file, and calls `onWritten` after each.
  ///
  /// - Throws: ``FileError`` when a file cannot be written; those before it are.
  package func write(
    into folder: String,
    onWritten: (File) -> Void
  ) throws(FileError) {
    if files.contains(where: \.isChanged) { try AtomicFile.makeFolder(folder) }
    for file in files {
      try file.write()
      onWritten(file)
    }
  }

  /// Counts what the files have, as `settle check` does; `registry` has the devices of all files.
  mutating func count(in registry: Registry) {
    for place in files.indices {
      guard let outline = try? YAMLOutline.read(files[place].new, file: files[place].path) else {
        continue
      }
      func numbers(_ outline: YAMLOutline?) -> [Int] {
        (outline?.entries ?? []).compactMap { registry.deviceIndex(ofID: $0.key.utf8.span) }
      }
      let (devices, groups) = (numbers(outline), numbers(outline["groups"]))
      files[place].devices = devices.count
      files[place].groups = groups.count
      files[place].properties = (devices + groups).reduce(0) {
        $0 + registry.indices(ofDevice: $1).count
      }
    }
  }

  /// Reports the devices and groups that have mistakes, and returns the others.
  private mutating func usable(_ all: [FileDevice], _ rejected: [String: String]) -> [FileDevice] {
    all.filter { device in
      guard let reason = rejected[device.id] ?? device.mistake else { return true }
      diagnostics.report(.refused, device.id, reason)
      return false
    }
  }

  /// The identifiers of known devices: from the record, otherwise from their topic in the file.
  private static func identifiers(
    _ record: ImportRecord,
    _ devices: [ImportedDevice],
    in outline: YAMLOutline?
  ) -> [String: String] {
    var known = record.identifiers
    let used = Set(known.values)
    for device in devices where known[device.identity] == nil {
      guard let topic = device.topic else { continue }
      let entry = outline?.entries?.first { entry in
        entry.value["topic"]?.json == .string(topic) && !used.contains(entry.key)
      }
      if let entry { known[device.identity] = entry.key }
    }
    return known
  }

  /// The new record: what is written, and earlier entries that are no longer announced.
  private static func record(
    _ written: [FileDevice],
    _ groups: [FileDevice],
    after old: ImportRecord
  ) -> ImportRecord {
    var record = old
    for group in groups {
      record.groups[group.id] = ImportRecord.Entry(identity: group.identity, members: group.members)
    }
    for device in written {
      var members = device.members
      let former = old.devices[device.id]?.members.first { $0.name == "properties" }?.value.members
      if let former {
        let index = members.firstIndex { $0.name == "properties" }
        var properties = index.flatMap { members[$0].value.members } ?? []
        for property in former
        where !properties.contains(where: { $0.name == property.name })
          && !device.properties.contains(property.name)
        {
          properties.append(property)
        }
        if let index {
          members[index].value = .object(properties)
        } else if !properties.isEmpty {
          members.append(.init("properties", .object(properties)))
        }
      }
      record.devices[device.id] = ImportRecord.Entry(identity: device.identity, members: members)
    }
    return record
  }
}

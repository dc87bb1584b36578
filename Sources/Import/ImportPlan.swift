// Settle
// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Devices
import JSON
package import Routing

/// What an import makes of announcements: files as they are to be, and what was not taken.
///
/// Pure: messages, the files as they are and the settings in; bytes and remarks out.
package struct ImportPlan: Sendable {
  /// One device file.
  package struct File: Sendable {
    package let source: ImportSource
    package let path: String
    package let old: [UInt8]?
    package let new: [UInt8]
    /// Where the record of what was written belongs, and its bytes.
    package let recordPath: String
    package let record: [UInt8]
    /// Devices and properties that are announced.
    package let devices: Int
    package let properties: Int
    package let changes: [ImportChange]

    package var isChanged: Bool { old != new }

    /// Writes the file, if it changes, and then the record of it.
    package func write() throws(FileTrouble) {
      if isChanged { try AtomicFile.write(new, to: path) }
      try AtomicFile.write(record, to: recordPath)
    }
  }

  /// What is asked for.
  package struct Request: Sendable {
    /// Home Assistant's discovery prefix.
    package var prefix = "homeassistant"
    package var sources = Set(ImportSource.allCases)
    /// Only this Zigbee2MQTT, or all that are announced.
    package var base: String?
    /// The gateway's own base topic, whose announcements are its own.
    package var ownBase = "settle"
    /// Base topics that routes listen at, and where what is set there goes.
    package var displaced: [String: String] = [:]
    /// Lanes that the settings have.
    package var lanes: Set<String> = []

    package init() {}

    /// Notes the routes that lead from one Zigbee2MQTT's topics to another's.
    package mutating func note(_ routes: [RouteConfiguration]) {
      let suffix = "/+/set"
      for route in routes where route.from.broker == nil && route.to.broker == nil {
        guard route.from.topic.hasSuffix(suffix), route.to.topic.hasSuffix(suffix) else {
          continue
        }
        let from = String(route.from.topic.dropLast(suffix.count))
        displaced[from] = String(route.to.topic.dropLast(suffix.count))
      }
    }

    /// The topics that announcements come on.
    package var filters: [String] {
      var filters: [String] = []
      if sources.contains(.zigbee2mqtt) {
        // Base topics have one or two levels, unless somebody says more.
        for base in base.map({ [$0] }) ?? ["+", "+/+"] {
          filters += ["\(base)/bridge/devices", "\(base)/bridge/groups"]
        }
      }
      if sources.contains(.homeassistant) {
        filters += ["\(prefix)/+/+/config", "\(prefix)/+/+/+/config"]
      }
      if sources.contains(.homie) { filters.append("+/5/+/$description") }
      return filters
    }
  }

  /// A file and its record as they are on the disk.
  package struct Present: Sendable {
    package var file: [UInt8]?
    package var record: [UInt8]?
    package init(file: [UInt8]?, record: [UInt8]?) {
      self.file = file
      self.record = record
    }
  }

  package private(set) var files: [File] = []
  package private(set) var remarks: [Remark] = []

  /// Makes the plan.
  ///
  /// Other messages than announcements are ignored, and their order does not matter. `folder` is
  /// that of the device files, `present` what earlier imports wrote there, and `others` the devices
  /// of all other files in it. `refused` says, by identifier, which devices came out wrong before.
  ///
  /// - Throws: Mistakes in a file that an earlier import wrote.
  package init(
    _ announcements: [Announcement],
    request: Request,
    folder: String,
    present: [ImportSource: Present],
    others: Registry,
    refused: [String: String] = [:]
  ) throws(ConfigurationFailure) {
    var taken = Set(others.devices.map(\.id))
    var topics: [String: String] = [:]
    for property in others.properties {
      topics[property.property.command.topic] = others.devices[property.device].id
    }
    let found = Sources(announcements, request: request)
    remarks += found.remarks
    for source in ImportSource.allCases {
      guard let findings = found.findings[source] else { continue }
      remarks += findings.remarks
      var devices: [ImportedDevice] = []
      for device in findings.devices {
        if let owner = device.commandTopics.compactMap({ topics[$0] }).first {
          remarks.append(
            Remark(
              .leftOut,
              PlainText.clean(device.name, limit: 80),
              "already in another device file, as '\(owner)'"
            )
          )
        } else {
          devices.append(device)
        }
      }
      let present = present[source]
      try add(source, devices, folder: folder, present, taken: &taken, refused: refused)
    }
  }

  private mutating func add(
    _ source: ImportSource,
    _ devices: [ImportedDevice],
    folder: String,
    _ present: Present?,
    taken: inout Set<String>,
    refused: [String: String]
  ) throws(ConfigurationFailure) {
    let path = Self.path(source.fileName, in: folder)
    let record = present?.record.flatMap { ImportRecord($0) } ?? ImportRecord()
    if let bytes = present?.record, ImportRecord(bytes) == nil {
      remarks.append(
        Remark(
          .partly,
          Self.path(source.recordName, in: folder),
          "cannot be read, so all that the file says counts as written by hand"
        )
      )
    }
    let old = present?.file
    let root = try old.map { bytes throws(ConfigurationFailure) in
      try YAMLOutline.read(bytes, file: path)
    }
    let outline = root.flatMap(\.self)
    var numbering = DeviceNumbering(
      known: Self.identifiers(record, devices, in: outline),
      taken: taken
    )
    let announced = devices.map { device in
      let id = numbering.id(for: device)
      return FileDevice(
        id: id,
        identity: device.identity,
        comment: device.comment,
        members: DeviceFields.members(of: device, id: id)
      )
    }
    taken.formUnion(announced.map(\.id))
    let written = announced.filter { refused[$0.id] == nil }
    for device in announced {
      guard let reason = refused[device.id] else { continue }
      remarks.append(Remark(.refused, device.id, reason))
    }
    if old == nil, written.isEmpty { return }
    var new: [UInt8]
    var changes: [ImportChange] = []
    if let old {
      do throws(Refusal) {
        let merge = try FileMerge(
          old,
          root: outline,
          record: record,
          devices: written,
          announced: Set(announced.map(\.id))
        )
        (new, changes) = (merge.result, merge.changes)
        remarks += merge.remarks
      } catch {
        remarks.append(Remark(.refused, path, error.reason))
        return
      }
    } else {
      new = Array(ImportedFile.text(written, source: source).utf8)
      changes = written.map { ImportChange(.added, $0.id) }
    }
    files.append(
      File(
        source: source,
        path: path,
        old: old,
        new: new,
        recordPath: Self.path(source.recordName, in: folder),
        record: Self.record(written, after: record).bytes,
        devices: written.count,
        properties: devices.reduce(0) { $0 + $1.properties.count },
        changes: changes
      )
    )
  }

  /// A file's path, as the configuration names it in messages.
  package static func path(_ name: String, in folder: String) -> String {
    if folder == "." { return name }
    return folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
  }

  /// Identifiers that devices have already: by the record, else by their topic in the file.
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

  /// What is on record now: what was written, and what was once and is no longer announced.
  private static func record(_ written: [FileDevice], after old: ImportRecord) -> ImportRecord {
    var record = old
    for device in written {
      var members = device.members
      let former = old.devices[device.id]?.members.first { $0.name == "properties" }?.value.members
      if let former {
        let place = members.firstIndex { $0.name == "properties" }
        var properties = place.flatMap { members[$0].value.members } ?? []
        for property in former where !properties.contains(where: { $0.name == property.name }) {
          properties.append(property)
        }
        if let place {
          members[place].value = .object(properties)
        } else if !properties.isEmpty {
          members.append(.init("properties", .object(properties)))
        }
      }
      record.devices[device.id] = ImportRecord.Entry(identity: device.identity, members: members)
    }
    return record
  }
}

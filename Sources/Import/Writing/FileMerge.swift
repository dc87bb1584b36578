// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration
internal import JSON
internal import Values

/// Updates a device file and keeps every edited part of it, byte for byte.
///
/// The merge compares three versions of each value: the last import's, the file's and the announced
/// one. An unedited value is updated, an edited one is kept, and a removed one stays removed. A
/// diagnostic names what is no longer announced; only fields of devices and properties are removed.
struct FileMerge {
  private let bytes: [UInt8]
  private var edits = TextEdits()
  private(set) var changes: [ImportChange] = []
  private(set) var diagnostics: [ImportDiagnostic] = []
  /// The properties of the device that is merged, with those that are the same in its profile.
  private var properties: Set<String> = []

  /// The kind of mapping that is merged.
  private enum Level {
    case device
    case details
    case properties
    case property

    /// The level of an entry's own entries; `nil` if the entry is merged as one value.
    func inner(_ key: String) -> Level? {
      switch self {
      case .device: ["properties": .properties, "device": .details][key]
      case .properties: .property
      case .details, .property: Optional.none
      }
    }
  }

  /// Merges `devices` and `groups` into the file `bytes`, whose outline is `root`.
  ///
  /// `announced` has the identifiers of all announced devices and groups, imported or not.
  ///
  /// - Throws: ``Rejection`` when the file is not a block mapping of devices.
  init(
    _ bytes: [UInt8],
    root: YAMLOutline?,
    record: ImportRecord,
    devices: [FileDevice],
    groups: [FileDevice],
    announced: Set<String>
  ) throws(Rejection) {
    self.bytes = bytes
    if let root, root.isInline || root.entries == nil {
      throw Rejection(
        "the file is not a list of devices, one below the other, so nothing can be added"
      )
    }
    var previous: YAMLOutline.Entry?
    for device in devices {
      let known = record.devices[device.id]
      properties = device.properties
      if let entry = root?.entries?.first(where: { $0.key == device.id }) {
        merge(device.members, known?.members ?? [], into: entry.value, .device, at: device.id)
        previous = entry
      } else if known == nil {
        let offset = previous.map { bytes.endOfLine(after: $0.value.range) } ?? bytes.count
        edits.insert(lineBreak(at: offset) + "\n" + device.text(), at: offset)
        changes.append(ImportChange(.added, device.id))
      }
    }
    for id in record.devices.keys.sorted() where !announced.contains(id) {
      if root?[id] != nil { reportGone(id) }
    }
    merge(groups, record, into: root?["groups"])
    for id in record.groups.keys.sorted() where !announced.contains(id) {
      if root?["groups"]?[id] != nil { reportGone(id) }
    }
  }

  /// Merges the entries of `groups:`, which is added if it is missing.
  private mutating func merge(
    _ groups: [FileDevice],
    _ record: ImportRecord,
    into section: YAMLOutline?
  ) {
    let missing = groups.filter { group in
      let known = record.groups[group.id]
      guard let entry = section?[group.id] else { return known == nil }
      merge(group.members, known?.members ?? [], into: entry, .device, at: group.id)
      return false
    }
    guard !missing.isEmpty else { return }
    guard let section else {
      edits.insert(lineBreak(at: bytes.count) + ImportedFile.section(of: missing), at: bytes.count)
      changes += missing.map { ImportChange(.added, $0.id) }
      return
    }
    guard !section.isInline, let last = section.entries?.last else {
      for group in missing {
        diagnostics.report(
          .refused,
          group.id,
          "'groups:' of the file is not a list of groups, one below the other, so nothing can be "
            + "added"
        )
      }
      return
    }
    let indent = last.start - bytes.startOfLine(last.start)
    let offset = bytes.endOfLine(after: last.value.range)
    for group in missing {
      edits.insert(lineBreak(at: offset) + "\n" + group.text(indent: indent), at: offset)
      changes.append(ImportChange(.added, group.id))
    }
  }

  private mutating func reportGone(_ path: String) {
    diagnostics.report(.gone, path, "no longer announced; remove it from the file by hand")
  }

  /// The merged file.
  var result: [UInt8] { edits.applied(to: bytes) }

  /// Merges entries of a mapping.
  ///
  /// - Returns: Whether nothing would be left of it, so that the mapping itself goes.
  @discardableResult
  private mutating func merge(
    _ new: [JSONValue.Member],
    _ base: [JSONValue.Member],
    into mine: YAMLOutline,
    _ level: Level,
    at path: String
  ) -> Bool {
    guard !mine.isAlias, let entries = mine.entries else {
      if !mine.json.isEquivalent(to: .object(new)),
        !JSONValue.object(new).isEquivalent(to: .object(base))
      {
        diagnostics.report(.kept, path, "edited by hand to another form, and left unchanged")
      }
      return false
    }
    var previous: YAMLOutline.Entry?
    for member in new {
      let memberPath = "\(path)/\(member.name)"
      let known = base.first { $0.name == member.name }?.value
      guard let entry = entries.first(where: { $0.key == member.name }) else {
        if known == nil {
          insert(member, into: mine, entries, after: previous)
          changes.append(ImportChange(.added, Self.shown(memberPath)))
        }
        continue
      }
      previous = entry
      if let inner = level.inner(member.name), let values = member.value.members,
        entry.value.entries != nil
      {
        merge(values, known?.members ?? [], into: entry.value, inner, at: memberPath)
      } else {
        mergeValue(entry, new: member, known: known, at: memberPath)
      }
    }
    var removed: Set<String> = []
    for member in base where !new.contains(where: { $0.name == member.name }) {
      guard let entry = entries.first(where: { $0.key == member.name }) else { continue }
      if level.inner(member.name) == .properties, let former = member.value.members,
        entry.value.entries != nil
      {
        if merge([], former, into: entry.value, .properties, at: "\(path)/\(member.name)") {
          removed.insert(entry.key)
        }
      } else if mayRemove(entry, known: member.value, level, at: "\(path)/\(member.name)") {
        changes.append(ImportChange(.removed, Self.shown("\(path)/\(member.name)")))
        removed.insert(entry.key)
      }
    }
    guard !removed.isEmpty, removed.count == entries.count else {
      remove(removed, from: mine, entries)
      return false
    }
    if new.isEmpty { return true }
    if mine.isInline {
      edits.replace(mine.range, with: YAMLText.flow(.object(new)))
    } else {
      remove(removed, from: mine, entries)
    }
    return false
  }

  /// Merges a value that is in the file and announced.
  private mutating func mergeValue(
    _ entry: YAMLOutline.Entry,
    new: JSONValue.Member,
    known: JSONValue?,
    at path: String
  ) {
    let mine = entry.value.json
    if mine.isEquivalent(to: new.value) { return }
    let isUntouched = known.map { mine.isEquivalent(to: $0) } ?? false
    guard isUntouched, !entry.value.isAlias else {
      if known == nil || known?.isEquivalent(to: new.value) == false {
        diagnostics.report(
          .kept,
          Self.shown(path),
          "the file has \(Self.short(mine)), the announcement \(Self.short(new.value))"
        )
      }
      return
    }
    if entry.value.isInline {
      edits.replace(entry.value.range, with: YAMLText.flow(new.value))
    } else {
      let indent = entry.start - bytes.startOfLine(entry.start)
      let text = YAMLText.entry(new.name, new.value, indent: indent)
      edits.replace(
        bytes.startOfLine(entry.start)..<bytes.endOfLine(after: entry.value.range),
        with: text
      )
    }
    changes.append(ImportChange(.changed, Self.shown(path)))
  }

  /// Whether a value that is no longer announced is removed: not if it was edited.
  private mutating func mayRemove(
    _ entry: YAMLOutline.Entry,
    known: JSONValue,
    _ level: Level,
    at path: String
  ) -> Bool {
    // Announcements to Home Assistant name rooms, links and classes, and `--only` leaves those out.
    let ofHomeAssistant: Set =
      level == .device
      ? ["area", "device"] : level == .property ? ["name", "class", "category"] : []
    if level == .details || ofHomeAssistant.contains(entry.key) { return false }
    let isInherited = level == .properties && properties.contains(entry.key)
    guard level != .properties || isInherited, entry.key != "properties" else {
      reportGone(Self.shown(path))
      return false
    }
    guard entry.value.json.isEquivalent(to: known), !entry.value.isAlias else {
      let change = isInherited ? "announced as its profile has it" : "no longer announced"
      diagnostics.report(.kept, Self.shown(path), "\(change), and edited by hand")
      return false
    }
    return true
  }

  /// Removes entries of a mapping, and the commas between them.
  private mutating func remove(
    _ keys: Set<String>,
    from mapping: YAMLOutline,
    _ entries: [YAMLOutline.Entry]
  ) {
    guard mapping.isInline else {
      for entry in entries where keys.contains(entry.key) {
        let range = bytes.startOfLine(entry.start)..<bytes.endOfLine(after: entry.value.range)
        edits.replace(range, with: comments(in: range))
      }
      return
    }
    edits.remove(
      entries.map { keys.contains($0.key) },
      of: entries.map { $0.start..<$0.value.range.upperBound }
    )
  }

  private mutating func insert(
    _ member: JSONValue.Member,
    into mapping: YAMLOutline,
    _ entries: [YAMLOutline.Entry],
    after previous: YAMLOutline.Entry?
  ) {
    let inline = YAMLText.flow(.object([member])).dropFirst().dropLast()
    guard let last = previous ?? entries.last else {
      return edits.insert(String(inline), at: mapping.range.lowerBound + 1)
    }
    if mapping.isInline { return edits.insert(", \(inline)", at: last.value.range.upperBound) }
    let indent = last.start - bytes.startOfLine(last.start)
    let offset = bytes.endOfLine(after: last.value.range)
    let text =
      member.name == "properties"
      ? String(repeating: " ", count: indent) + "properties:\n"
        + YAMLText.block(member.value.members ?? [], indent: indent + 2)
      : YAMLText.entry(member.name, member.value, indent: indent)
    edits.insert(lineBreak(at: offset) + text, at: offset)
  }

  // MARK: - Lines

  /// The comments of lines, each on a line of its own.
  private func comments(in range: Range<Int>) -> String {
    var lines = ""
    for line in String(decoding: bytes[range], as: UTF8.self).split(separator: "\n") {
      var quote: Character?
      var previous: Character = " "
      for index in line.indices {
        let character = line[index]
        if character == "#", previous == " ", quote == nil {
          lines += line.prefix { $0 == " " } + line[index...] + "\n"
          break
        }
        if quote == character {
          quote = nil
        } else if quote == nil, "\"'".contains(character) {
          quote = character
        }
        previous = character
      }
    }
    return lines
  }

  /// The line break that is missing before `offset`, or an empty string.
  private func lineBreak(at offset: Int) -> String {
    offset > 0 && bytes[offset - 1] != 0x0A ? "\n" : ""
  }

  /// The path as `device/property/field`.
  private static func shown(_ path: String) -> String {
    path.replaced("/properties/", by: "/")
  }

  private static func short(_ value: JSONValue) -> String {
    Excerpt.of(YAMLText.flow(value), limit: 60)
  }
}

/// One change that an import makes in a file.
package struct ImportChange: Hashable, Sendable {
  package enum Kind: String, Hashable, Sendable {
    case added, changed, removed
  }

  package let kind: Kind
  /// `device`, `device/property` or `device/property/field`.
  package let path: String

  package init(_ kind: Kind, _ path: String) {
    self.kind = kind
    self.path = path
  }
}

extension [UInt8] {
  /// The start of the line that `offset` is on.
  func startOfLine(_ offset: Int) -> Int { (self[..<offset].lastIndex(of: 0x0A) ?? -1) + 1 }

  /// The end of the last line of a value.
  func endOfLine(after range: Range<Int>) -> Int {
    let end = range.upperBound
    if end > range.lowerBound, self[end - 1] == 0x0A { return end }
    return self[end...].firstIndex(of: 0x0A).map { $0 + 1 } ?? count
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration
internal import Devices
internal import JSON

/// Brings a device file up to date, leaving what a person changed as it is, to the byte.
///
/// Three versions of each value are compared: the last import's, the file's, and what is announced
/// now. A value that nobody touched follows what is announced; a value that somebody changed stays;
/// what somebody removed stays away; what is no longer announced is named, and only fields of
/// properties are removed for that.
struct FileMerge {
  private let bytes: [UInt8]
  private var edits = TextEdits()
  private(set) var changes: [ImportChange] = []
  private(set) var remarks: [Remark] = []

  /// What merging two mappings means for their entries.
  private enum Level {
    case device
    case properties
    case property

    /// What the entries of an entry are; `nil` where it is one value.
    func inner(_ key: String) -> Level? {
      switch self {
      case .device: key == "properties" ? .properties : Optional.none
      case .properties: .property
      case .property: Optional.none
      }
    }
  }

  /// Merges `devices` into the file `bytes`, whose outline is `root`.
  ///
  /// `announced` are the identifiers of all that is still there, taken or not.
  init(
    _ bytes: [UInt8],
    root: YAMLOutline?,
    record: ImportRecord,
    devices: [FileDevice],
    announced: Set<String>
  ) throws(Refusal) {
    self.bytes = bytes
    if let root, root.isInline || root.entries == nil {
      throw Refusal("the file is no list of devices, one below the other, so nothing can be added")
    }
    var previous: YAMLOutline.Entry?
    for device in devices {
      let known = record.devices[device.id]
      if let entry = root?.entries?.first(where: { $0.key == device.id }) {
        merge(device.members, known?.members ?? [], into: entry.value, .device, at: device.id)
        previous = entry
      } else if known == nil {
        let place = previous.map { endOfLine(after: $0.value.range) } ?? bytes.count
        edits.insert(lineBreak(at: place) + "\n" + device.text, at: place)
        changes.append(ImportChange(.added, device.id))
      }
    }
    for id in record.devices.keys.sorted() where !announced.contains(id) {
      guard root?[id] != nil else { continue }
      remarks.append(Remark(.gone, id, "no longer announced; remove it from the file by hand"))
    }
  }

  /// The file as it is to be.
  var result: [UInt8] { edits.applied(to: bytes) }

  private mutating func merge(
    _ new: [JSONValue.Member],
    _ base: [JSONValue.Member],
    into mine: YAMLOutline,
    _ level: Level,
    at path: String
  ) {
    guard !mine.isAlias, let entries = mine.entries else {
      if !mine.json.means(.object(new)), !JSONValue.object(new).means(.object(base)) {
        remarks.append(Remark(.kept, path, "written by hand in another form, and left so"))
      }
      return
    }
    var previous: YAMLOutline.Entry?
    for member in new {
      let place = "\(path)/\(member.name)"
      let known = base.first { $0.name == member.name }?.value
      guard let entry = entries.first(where: { $0.key == member.name }) else {
        if known == nil {
          insert(member, into: mine, entries, after: previous)
          changes.append(ImportChange(.added, Self.shown(place)))
        }
        continue
      }
      previous = entry
      if let inner = level.inner(member.name), let values = member.value.members,
        entry.value.entries != nil
      {
        merge(values, known?.members ?? [], into: entry.value, inner, at: place)
      } else {
        settle(entry, in: mine, new: member, known: known, at: place)
      }
    }
    for member in base where !new.contains(where: { $0.name == member.name }) {
      guard let entry = entries.first(where: { $0.key == member.name }) else { continue }
      drop(entry, in: mine, entries, known: member.value, level, at: "\(path)/\(member.name)")
    }
  }

  /// One value that is in the file and announced.
  private mutating func settle(
    _ entry: YAMLOutline.Entry,
    in mapping: YAMLOutline,
    new: JSONValue.Member,
    known: JSONValue?,
    at path: String
  ) {
    let mine = entry.value.json
    if mine.means(new.value) { return }
    let isUntouched = known.map { mine.means($0) } ?? false
    guard isUntouched, !entry.value.isAlias else {
      if known == nil || known?.means(new.value) == false {
        remarks.append(
          Remark(
            .kept,
            Self.shown(path),
            "the file says \(Self.short(mine)), announced is \(Self.short(new.value))"
          )
        )
      }
      return
    }
    if entry.value.isInline {
      edits.replace(entry.value.range, with: YAMLText.flow(new.value))
    } else {
      let indent = entry.start - startOfLine(entry.start)
      let text = YAMLText.entry(new.name, new.value, indent: indent)
      edits.replace(
        startOfLine(entry.start)..<endOfLine(after: entry.value.range),
        with: text
      )
    }
    changes.append(ImportChange(.changed, Self.shown(path)))
  }

  /// One value that was announced and is no longer.
  private mutating func drop(
    _ entry: YAMLOutline.Entry,
    in mapping: YAMLOutline,
    _ entries: [YAMLOutline.Entry],
    known: JSONValue,
    _ level: Level,
    at path: String
  ) {
    guard level != .properties, entry.key != "properties" else {
      remarks.append(
        Remark(.gone, Self.shown(path), "no longer announced; remove it from the file by hand")
      )
      return
    }
    guard entry.value.json.means(known), !entry.value.isAlias, entries.count > 1 else {
      remarks.append(Remark(.kept, Self.shown(path), "no longer announced, and edited by hand"))
      return
    }
    changes.append(ImportChange(.removed, Self.shown(path)))
    guard mapping.isInline else {
      let range = startOfLine(entry.start)..<endOfLine(after: entry.value.range)
      edits.replace(range, with: "")
      return
    }
    guard let place = entries.firstIndex(where: { $0.start == entry.start }) else { return }
    let range =
      place + 1 < entries.count
      ? entry.start..<entries[place + 1].start
      : entries[place - 1].value.range.upperBound..<entry.value.range.upperBound
    edits.replace(range, with: "")
  }

  private mutating func insert(
    _ member: JSONValue.Member,
    into mapping: YAMLOutline,
    _ entries: [YAMLOutline.Entry],
    after previous: YAMLOutline.Entry?
  ) {
    guard let last = previous ?? entries.last else {
      let text = YAMLText.flow(.object([member])).dropFirst().dropLast()
      edits.insert(String(text), at: mapping.range.lowerBound + 1)
      return
    }
    if mapping.isInline {
      let text = YAMLText.flow(.object([member])).dropFirst().dropLast()
      edits.insert(", \(text)", at: last.value.range.upperBound)
      return
    }
    let indent = last.start - startOfLine(last.start)
    let place = endOfLine(after: last.value.range)
    let text =
      member.name == "properties"
      ? String(repeating: " ", count: indent) + "properties:\n"
        + YAMLText.block(member.value.members ?? [], indent: indent + 2)
      : YAMLText.entry(member.name, member.value, indent: indent)
    edits.insert(lineBreak(at: place) + text, at: place)
  }

  // MARK: - Places

  private func startOfLine(_ place: Int) -> Int {
    (bytes[..<place].lastIndex(of: 0x0A) ?? -1) + 1
  }

  /// Where the line that a value ends in is over.
  private func endOfLine(after range: Range<Int>) -> Int {
    let end = range.upperBound
    if end > range.lowerBound, bytes[end - 1] == 0x0A { return end }
    return bytes[end...].firstIndex(of: 0x0A).map { $0 + 1 } ?? bytes.count
  }

  /// What ends the last line, if the file does not.
  private func lineBreak(at place: Int) -> String {
    place > 0 && bytes[place - 1] != 0x0A ? "\n" : ""
  }

  /// `device/property/field`, as people write keys.
  private static func shown(_ path: String) -> String {
    path.replacing("/properties/", with: "/")
  }

  private static func short(_ value: JSONValue) -> String {
    Excerpt.of(YAMLText.flow(value), limit: 60)
  }
}

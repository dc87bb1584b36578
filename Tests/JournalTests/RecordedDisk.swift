// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOutTesting

/// A folder on a disk, built from the record of a `WriteRecorder`: the durable content, and the
/// possible remains of the rest after a power cut.
///
/// Each 512-byte sector of a write that was not synced survives or is lost on its own. Names
/// survive in order: a cut loses the last of those that the folder's sync has not made durable.
struct RecordedDisk {
  /// Number of a file, whatever its name.
  private typealias FileNumber = Int

  private enum NameChange {
    case create(String, FileNumber)
    case rename(String, to: String)
    case unlink(String)
  }

  private enum Change {
    case sector(offset: Int, [UInt8])
    case truncate(size: Int)
  }

  /// The durable content.
  private var durable: [FileNumber: [UInt8]] = [:]
  private var durableNames: [String: FileNumber] = [:]
  /// The operations that are not durable, in order.
  private var pending: [FileNumber: [Change]] = [:]
  private var pendingNames: [NameChange] = []
  /// The names as the running system sees them.
  private var names: [String: FileNumber] = [:]
  private let folder: String

  /// A disk whose folder holds these files.
  init(folder: String, files: [String: [UInt8]]) {
    self.folder = folder
    for (number, (name, bytes)) in files.enumerated() {
      durable[number] = bytes
      durableNames[name] = number
    }
    names = durableNames
  }

  // MARK: - Operations

  mutating func apply(_ operation: RecordedOperation) {
    switch operation {
    case .fact: break
    case .sync(let path) where path == folder:
      for change in pendingNames { Self.apply(change, to: &durableNames) }
      pendingNames = []
    case .sync(let path):
      guard let file = names[path] else { break }
      for change in pending.removeValue(forKey: file) ?? [] {
        Self.apply(change, to: &durable[file])
      }
    case .write(let path, let offset, let bytes):
      guard let file = names[path] else { break }
      pending[file, default: []] += Self.sectors(offset, bytes)
    case .truncate(let path, let size):
      guard let file = names[path] else { break }
      pending[file, default: []].append(.truncate(size: size))
    case .create(let path):
      let file = durable.count
      durable[file] = []
      change(.create(path, file))
    case .rename(let path, let other): change(.rename(path, to: other))
    case .unlink(let path): change(.unlink(path))
    }
  }

  private mutating func change(_ change: NameChange) {
    Self.apply(change, to: &names)
    pendingNames.append(change)
  }

  private static func sectors(_ offset: Int, _ bytes: [UInt8]) -> [Change] {
    var changes: [Change] = []
    var place = 0
    while place < bytes.count {
      let end = min(bytes.count, place + 512 - (offset + place) % 512)
      changes.append(.sector(offset: offset + place, Array(bytes[place..<end])))
      place = end
    }
    return changes
  }

  private static func apply(_ change: NameChange, to names: inout [String: FileNumber]) {
    switch change {
    case .create(let name, let file): names[name] = file
    case .rename(let name, let other): names[other] = names.removeValue(forKey: name)
    case .unlink(let name): names[name] = nil
    }
  }

  private static func apply(_ change: Change, to content: inout [UInt8]?) {
    var bytes = content ?? []
    content = nil
    switch change {
    case .sector(let offset, let sector):
      let missing = offset + sector.count - bytes.count
      if missing > 0 { bytes += [UInt8](repeating: 0, count: missing) }
      bytes.replaceSubrange(offset..<(offset + sector.count), with: sector)
    case .truncate(let size):
      if bytes.count > size { bytes.removeLast(bytes.count - size) }
      if bytes.count < size { bytes += [UInt8](repeating: 0, count: size - bytes.count) }
    }
    content = bytes
  }

  // MARK: - Power cuts

  /// The files after a power cut, by name; `random` chooses.
  func cut(using random: inout SeededGenerator) -> [String: [UInt8]] {
    var names = durableNames
    for change in pendingNames.prefix(Int.random(in: 0...pendingNames.count, using: &random)) {
      Self.apply(change, to: &names)
    }
    // The last percentage: only the end of what was written, such as a transaction's last frame.
    let share = [0, 30, 50, 90, 100, -1].randomElement(using: &random) ?? 0
    return names.mapValues { file in
      var content = durable[file]
      let changes = pending[file] ?? []
      let tail = changes.count - Int.random(in: 1...8, using: &random)
      for (place, change) in changes.enumerated() {
        let isKept = share < 0 ? place >= tail : Int.random(in: 0..<100, using: &random) < share
        if isKept { Self.apply(change, to: &content) }
      }
      return content ?? []
    }
  }
}

/// One entry of the record of a `WriteRecorder`.
enum RecordedOperation {
  case write(String, offset: Int, [UInt8])
  case truncate(String, size: Int)
  case sync(String)
  case create(String)
  case rename(String, to: String)
  case unlink(String)
  case fact(String)

  /// Reads a record; a truncated entry at its end is ignored.
  static func parse(_ record: [UInt8]) -> [RecordedOperation] {
    var operations: [RecordedOperation] = []
    var rest = record[...]
    while rest.count >= 13, let kind = rest.first {
      let numbers = (0..<3).map { number in
        (0..<4).reduce(0) { $0 | Int(rest[rest.startIndex + 1 + number * 4 + $1]) << ($1 * 8) }
      }
      guard rest.count >= 13 + numbers[0] + numbers[2] else { break }
      let body = rest.dropFirst(13)
      let path = String(decoding: body.prefix(numbers[0]), as: UTF8.self)
      let data = Array(body.dropFirst(numbers[0]).prefix(numbers[2]))
      let text = String(decoding: data, as: UTF8.self)
      switch Character(UnicodeScalar(kind)) {
      case "W": operations.append(.write(path, offset: numbers[1], data))
      case "T": operations.append(.truncate(path, size: numbers[1]))
      case "S": operations.append(.sync(path))
      case "C": operations.append(.create(path))
      case "R": operations.append(.rename(path, to: text))
      case "U": operations.append(.unlink(path))
      default: operations.append(.fact(text))
      }
      rest = body.dropFirst(numbers[0] + numbers[2])
    }
    return operations
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import Cluster
import Durability
import JSON
import LastOut

/// The bytes of a ``LogFrame``.
///
/// A byte for the version, a byte for the kind, then numbers as LEB128 and texts as their length
/// and UTF-8:
///
///     version=1 kind epoch number base [member | part count] puts {key age ttl content} removals {key}
///
/// Ages and times to live are in milliseconds.
package enum FrameCoding {
  static let version: UInt8 = 1

  package static func bytes(_ frame: LogFrame) -> [UInt8] {
    var writer = ByteWriter()
    writer.bytes.append(version)
    let kind: UInt8 =
      switch frame.kind {
      case .claim: 1
      case .changes: 2
      case .snapshot: 3
      }
    writer.bytes.append(kind)
    writer.append(frame.epoch)
    writer.append(frame.number)
    writer.append(frame.base)
    switch frame.kind {
    case .claim(let member): writer.append(member)
    case .changes: break
    case .snapshot(let part, let count):
      writer.append(UInt64(clamping: part))
      writer.append(UInt64(clamping: count))
    }
    writer.append(UInt64(frame.puts.count))
    for row in frame.puts {
      writer.append(row.key)
      writer.append(UInt64(clamping: row.age.wholeMilliseconds))
      writer.append(UInt64(clamping: row.ttl.wholeMilliseconds))
      writer.append(row.content.bytes)
    }
    writer.append(UInt64(frame.removals.count))
    for key in frame.removals { writer.append(key) }
    return writer.bytes
  }

  /// Reads a frame; `nil` for anything else, a frame of a later version included.
  package static func frame(_ bytes: [UInt8]) -> LogFrame? {
    var reader = ByteReader(bytes)
    guard reader.byte() == version, let kind = reader.byte(), let epoch = reader.number(),
      let number = reader.number(), let base = reader.number()
    else { return nil }
    var frame: LogFrame
    switch kind {
    case 1:
      guard let member = reader.text() else { return nil }
      frame = LogFrame(kind: .claim(member: member), epoch: epoch)
    case 2: frame = LogFrame(kind: .changes, epoch: epoch)
    case 3:
      guard let part = reader.count(), let count = reader.count(), part < count else { return nil }
      frame = LogFrame(kind: .snapshot(part: part, count: count), epoch: epoch)
    default: return nil
    }
    frame.number = number
    frame.base = base
    guard let puts = reader.count() else { return nil }
    for _ in 0..<puts {
      guard let key = reader.text(), let age = reader.milliseconds(),
        let ttl = reader.milliseconds(),
        let content = reader.bytes()
      else { return nil }
      frame.puts.append(LogFrame.Row(key: key, content: .bytes(content), age: age, ttl: ttl))
    }
    guard let removals = reader.count() else { return nil }
    for _ in 0..<removals {
      guard let key = reader.text() else { return nil }
      frame.removals.append(key)
    }
    return reader.isAtEnd ? frame : nil
  }
}

/// The subjects and the JSON of a cluster's records, which `nats stream get` shows.
enum RecordCoding {
  /// The part of a subject that names a record.
  static func token(_ key: RecordKey) -> String {
    switch key {
    case .member(let name): "member.\(escaped(name))"
    case .owner(let partition): "owner.\(partition.number)"
    }
  }

  static func key(_ token: some StringProtocol) -> RecordKey? {
    let parts = token.split(separator: ".", maxSplits: 1)
    guard parts.count == 2 else { return nil }
    switch parts[0] {
    case "member": return unescaped(parts[1]).map { .member($0) }
    case "owner": return Int(parts[1]).map { .owner(Partition($0)) }
    default: return nil
    }
  }

  static func bytes(_ record: ClusterRecord) -> [UInt8] {
    let json: JSONValue =
      switch record {
      case .member(let member):
        .object([
          "incarnation": hex(member.incarnation), "state": .string(member.state.rawValue),
          "beat": .integer(Int64(truncatingIfNeeded: member.beat)), "digest": hex(member.digest),
          "unreadable": .array(member.unreadable.sorted().map { .integer(Int64($0.number)) }),
        ])
      case .owner(let owner):
        .object([
          "member": owner.member.map { .string($0) } ?? .null,
          "incarnation": hex(owner.incarnation),
          "beat": .integer(Int64(truncatingIfNeeded: owner.beat)),
          "epoch": .integer(Int64(truncatingIfNeeded: owner.epoch)),
        ])
      }
    return JSONWriter.bytes(json)
  }

  /// Reads the record of a key; `nil` for anything else.
  static func record(_ bytes: [UInt8], of key: RecordKey) -> ClusterRecord? {
    guard let json = try? JSONParser.parse(bytes.span),
      let incarnation = number(json["incarnation"]), let beat = count(json["beat"])
    else { return nil }
    switch key {
    case .member:
      guard let word = json["state"]?.string, let state = MemberRecord.State(rawValue: word),
        let digest = number(json["digest"])
      else { return nil }
      return .member(
        MemberRecord(
          incarnation: incarnation,
          state: state,
          beat: beat,
          digest: digest,
          unreadable: partitions(json["unreadable"])
        )
      )
    case .owner:
      guard let epoch = count(json["epoch"]) else { return nil }
      return .owner(
        OwnerRecord(
          member: json["member"]?.string,
          incarnation: incarnation,
          beat: beat,
          epoch: epoch
        )
      )
    }
  }

  // 64 bits are more than JSON's numbers keep everywhere.
  private static func hex(_ number: UInt64) -> JSONValue {
    .string(String(number, radix: 16))
  }

  private static func number(_ value: JSONValue?) -> UInt64? {
    value?.string.flatMap { UInt64($0, radix: 16) }
  }

  private static func partitions(_ value: JSONValue?) -> Set<Partition> {
    Set((value?.elements ?? []).compactMap(count).map { Partition(Int($0)) })
  }

  /// The next record's is greater by one.
  private static func count(_ value: JSONValue?) -> UInt64? {
    guard case .integer(let number)? = value, (0..<Int64.max).contains(number) else { return nil }
    return UInt64(number)
  }

  /// A name as one level of a subject: other bytes than letters, digits and `-` as `_` and two
  /// digits.
  static func escaped(_ name: String) -> String {
    var result = ""
    for byte in name.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
        result.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        result += "_" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }
    return result
  }

  static func unescaped(_ token: some StringProtocol) -> String? {
    var bytes: [UInt8] = []
    var rest = Array(token.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "_") else {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2,
        let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      else { return nil }
      bytes.append(code)
      rest = rest.dropFirst(2)
    }
    return String(validating: bytes, as: UTF8.self)
  }
}

/// Writes numbers as LEB128, and texts and bytes as their length and content.
package struct ByteWriter {
  package var bytes: [UInt8] = []

  package init() {}

  package mutating func append(_ number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  package mutating func append(_ content: [UInt8]) {
    append(UInt64(content.count))
    bytes += content
  }

  package mutating func append(_ text: String) {
    append(UInt64(text.utf8.count))
    bytes += text.utf8
  }
}

/// Reads what ``ByteWriter`` wrote; every read is `nil` where the bytes end or make no sense.
package struct ByteReader {
  private let content: [UInt8]
  private var place = 0

  package init(_ bytes: [UInt8]) { content = bytes }

  package var isAtEnd: Bool { place == content.count }

  package mutating func byte() -> UInt8? {
    guard place < content.count else { return nil }
    defer { place += 1 }
    return content[place]
  }

  package mutating func number() -> UInt64? {
    var result: UInt64 = 0
    var shift: UInt64 = 0
    while let next = byte() {
      let bits = UInt64(next & 0x7F)
      guard shift < 63 || bits <= 1, shift <= 63 else { return nil }
      result |= bits << shift
      if next & 0x80 == 0 { return result }
      shift += 7
    }
    return nil
  }

  /// A number of things that follow, each of at least one byte.
  package mutating func count() -> Int? {
    guard let number = number(), let count = Int(exactly: number), count <= 1 << 24 else {
      return nil
    }
    return count
  }

  package mutating func bytes() -> [UInt8]? {
    guard let count = count(), count <= content.count - place else { return nil }
    defer { place += count }
    return Array(content[place..<place + count])
  }

  package mutating func text() -> String? {
    bytes().flatMap { String(validating: $0, as: UTF8.self) }
  }

  /// A duration, which may be as long as 64 bits of nanoseconds.
  package mutating func milliseconds() -> Duration? {
    number().flatMap { $0 <= Int64.max / 1_000_000 ? .milliseconds(Int64($0)) : nil }
  }
}

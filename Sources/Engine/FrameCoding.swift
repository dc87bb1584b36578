// Settle
// SPDX-License-Identifier: Apache-2.0

package import Cluster
import Durability
import LastOut

/// The bytes of a ``LogFrame``.
///
/// A byte for the version, a byte for the kind, then numbers as LEB128 and texts as their length and
/// UTF-8:
///
///     version=1 kind epoch [member | part count] puts {key age ttl content} removals {key}
///
/// Ages and times to live are in milliseconds.
package enum FrameCoding {
  static let version: UInt8 = 1

  package static func bytes(_ frame: LogFrame) -> [UInt8] {
    var writer = FrameWriter()
    writer.bytes.append(version)
    switch frame.kind {
    case .claim(let member):
      writer.bytes.append(1)
      writer.append(frame.epoch)
      writer.append(member)
    case .changes:
      writer.bytes.append(2)
      writer.append(frame.epoch)
    case .snapshot(let part, let count):
      writer.bytes.append(3)
      writer.append(frame.epoch)
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
    var reader = FrameReader(bytes)
    guard reader.byte() == version, let kind = reader.byte(), let epoch = reader.number() else {
      return nil
    }
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

private struct FrameWriter {
  var bytes: [UInt8] = []

  mutating func append(_ number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  mutating func append(_ content: [UInt8]) {
    append(UInt64(content.count))
    bytes += content
  }

  mutating func append(_ text: String) {
    append(UInt64(text.utf8.count))
    bytes += text.utf8
  }
}

/// Reads what ``FrameWriter`` wrote; every read is `nil` where the bytes end or make no sense.
private struct FrameReader {
  private let content: [UInt8]
  private var place = 0

  init(_ bytes: [UInt8]) { content = bytes }

  var isAtEnd: Bool { place == content.count }

  mutating func byte() -> UInt8? {
    guard place < content.count else { return nil }
    defer { place += 1 }
    return content[place]
  }

  mutating func number() -> UInt64? {
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
  mutating func count() -> Int? {
    guard let number = number(), let count = Int(exactly: number), count <= 1 << 24 else {
      return nil
    }
    return count
  }

  mutating func bytes() -> [UInt8]? {
    guard let count = count(), count <= content.count - place else { return nil }
    defer { place += count }
    return Array(content[place..<place + count])
  }

  mutating func text() -> String? { bytes().flatMap { String(validating: $0, as: UTF8.self) } }

  mutating func milliseconds() -> Duration? {
    number().flatMap { Int64(exactly: $0) }.map { .milliseconds($0) }
  }
}

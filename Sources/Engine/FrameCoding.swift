// Settle
// SPDX-License-Identifier: Apache-2.0

package import Cluster
import Durability
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

// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
@testable import Gateway
import GatewayCore
import Glibc
@testable import Journal

/// The journal's file, or its log beside a sound file, or one stored value: the first byte chooses.
enum JournalTarget {
  private static var path: String { FuzzFolder.path + "/journal.db" }

  static let run: @Sendable ([UInt8]) -> Void = { bytes in
    guard let kind = bytes.first else { return }
    let content = Array(bytes.dropFirst())
    switch kind {
    case UInt8(ascii: "v"): _ = DurableValue(content)
    case UInt8(ascii: "f"): open(file: content, log: nil)
    case UInt8(ascii: "l"): open(file: sound.file, log: content)
    case UInt8(ascii: "p"): open(file: patched(sound.file, content), log: nil)
    case UInt8(ascii: "q"): open(file: sound.file, log: patched(sound.log, content))
    default: return
    }
  }

  /// A sound file and its log, with one row.
  private static let sound: (file: [UInt8], log: [UInt8]) = {
    var store = JournalStore(path: path)
    let clock = SystemClock.read()
    do {
      _ = try store.open(clock: clock)
    } catch {
      fatalError("No journal at \(path)")
    }
    let files = (FuzzFolder.read(path), FuzzFolder.read(path + "-wal"))
    store.close()
    return files
  }()

  /// The bytes with others in place of some: each four of `changes` are three of a place and a
  /// byte.
  private static func patched(_ bytes: [UInt8], _ changes: [UInt8]) -> [UInt8] {
    var result = bytes
    guard !result.isEmpty else { return result }
    for start in stride(from: 0, to: changes.count - 3, by: 4) {
      let place =
        Int(changes[start]) << 16 | Int(changes[start + 1]) << 8 | Int(changes[start + 2])
      result[place % result.count] = changes[start + 3]
    }
    return result
  }

  /// Opens a journal of these files; whatever they hold, a start succeeds or refuses.
  private static func open(file: [UInt8], log: [UInt8]?) {
    for entry in ["", "-wal", "-lock", ".building", ".new", ".damaged-1"] {
      unsafe unlink(path + entry)
    }
    FuzzFolder.write(file, to: path)
    if let log { FuzzFolder.write(log, to: path + "-wal") }
    var store = JournalStore(path: path)
    if let contents = try? store.open(clock: SystemClock.read()) {
      for entry in contents.entries { _ = DurableValue(entry.content.bytes) }
    }
    store.close()
  }
}

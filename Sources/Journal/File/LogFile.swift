// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Durability
internal import Glibc

/// SQLite's write-ahead log beside the journal, `PATH-wal`, as a file.
///
/// It has at least ``JournalFormat/logSize`` bytes at any time, and while it is empty it says
/// so with ``emptyMark``: a log that was deleted, shortened or overwritten is recognised.
enum LogFile {
  /// The first bytes of an empty log, in place of SQLite's own, which SQLite takes
  /// for an empty log; within one sector, so that a power cut leaves all of it or none.
  static let emptyMark = Array("settle: this log holds nothing.\n".utf8)

  /// What is wrong with a log; `nil` when it is sound, empty, or torn in its last transaction only.
  static func damage(of path: String) throws(JournalFault) -> String? {
    guard let size = try Files.status(path)?.size else { return "its log is missing" }
    let minimum = JournalFormat.logSize
    guard size >= minimum else { return "its log has \(size) bytes, not \(minimum) or more" }
    if try isEmpty(path) { return nil }
    return LogCheck.damage(in: try Files.head(of: path, count: size))
  }

  static func isEmpty(_ path: String) throws(JournalFault) -> Bool {
    try Files.head(of: path, count: emptyMark.count) == emptyMark
  }

  /// Replaces a log by an empty one that has its space, so that a full disk does not stop it.
  ///
  /// The zeros are written: blocks that are only reserved cost a write of the file system's own
  /// when they are first used.
  static func create(_ path: String) throws(JournalFault) {
    try Files.remove(path)
    try Files.create(path)
    try Files.update(path) { (descriptor) throws(JournalFault) in
      var bytes = emptyMark
      bytes += [UInt8](repeating: 0, count: JournalFormat.logSize - bytes.count)
      try Files.write(bytes, to: descriptor, path)
    }
  }

  /// Empties a log whose content is in the file and synced there, and which SQLite has closed.
  ///
  /// A power cut in the middle leaves the log with its content, which changes nothing, or empty.
  static func clear(_ path: String) throws(JournalFault) {
    try Files.update(path) { (descriptor) throws(JournalFault) in
      try Files.write(emptyMark, to: descriptor, path)
    }
    guard let size = try Files.status(path)?.size, size > JournalFormat.logSize else { return }
    try Files.update(path) { (descriptor) throws(JournalFault) in
      guard ftruncate(descriptor, JournalFormat.logSize) == 0 else {
        throw Files.failure("ftruncate \(path)")
      }
    }
  }
}

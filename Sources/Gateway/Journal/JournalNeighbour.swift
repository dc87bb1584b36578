// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations

/// A small file beside the journal's, written as a whole.
struct JournalNeighbour: Sendable {
  let path: String

  /// `journal` is the path of the journal's file.
  init(_ name: String, besideJournal journal: String) {
    let folders = journal.split(separator: "/", omittingEmptySubsequences: false).dropLast()
    path = (folders + [name[...]]).joined(separator: "/")
  }

  /// What the file has; `nil` without one.
  func read() -> [UInt8]? { TextFile.read(path).map { Array($0.utf8) } }

  /// Replaces the file; `false` if it cannot be written, and then it is as before.
  func write(_ bytes: [UInt8]) -> Bool {
    let draft = path + ".new"
    let text = String(decoding: bytes, as: UTF8.self)
    guard (try? TextFile.write(text, to: draft, isSynced: true)) != nil else { return false }
    return unsafe rename(draft, path) == 0
  }

  /// Gives a damaged file another name.
  ///
  /// - Returns: The new path.
  func setAside() -> String {
    let aside = "\(path).damaged"
    unsafe rename(path, aside)
    return aside
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// One piece of work for the writer, which does one at a time.
package enum JournalWork: Sendable {
  /// Write one transaction and sync it.
  case commit(JournalBatch)
  /// After a failure: replace the file by a new one with exactly these values.
  ///
  /// What an earlier failed sync left on the disk cannot be trusted, so nothing of it is reused.
  case rebuild([JournalEntry])
  /// The file has never been read: open or create it.
  case reopen
}

/// The changes of one transaction; a key is in at most one of the two lists.
package struct JournalBatch: Hashable, Sendable {
  package var puts: [JournalEntry] = []
  package var removals: [String] = []

  package init(puts: [JournalEntry] = [], removals: [String] = []) {
    self.puts = puts
    self.removals = removals
  }

  package var isEmpty: Bool { puts.isEmpty && removals.isEmpty }
}

/// How a piece of work ended.
package enum JournalResult: Sendable {
  /// All of it is written and synced.
  case done
  /// None of it is reliable; part of it may be on the disk all the same.
  case failed(JournalFault)
  /// The file was opened and holds these values.
  case reopened(JournalContents)
}

/// What a journal held when it was opened.
package struct JournalContents: Sendable {
  package var entries: [JournalEntry] = []
  /// The damaged journal that was found instead.
  package var setAside: SetAside?

  package init(entries: [JournalEntry] = [], setAside: SetAside? = nil) {
    self.entries = entries
    self.setAside = setAside
  }
}

/// A damaged journal that was moved out of the way; nothing of it is used.
package struct SetAside: Hashable, Sendable {
  /// Where it is now; `nil` when its files are missing and nothing is left to keep.
  package var path: String?
  /// What is damaged or missing.
  package var reason: String

  package init(path: String?, reason: String) {
    self.path = path
    self.reason = reason
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// What the writer has to do next; one at a time.
package enum JournalWork: Sendable {
  /// Write one transaction and sync it.
  case commit(JournalBatch)
  /// After a failure: put a new file with exactly these values in place of the old one.
  ///
  /// What an earlier failed sync left behind cannot be trusted, so nothing of it is used again.
  case rebuild([JournalEntry])
  /// The file has never been read: open it, or make it.
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
  /// Written and synced, all of it.
  case done
  /// Nothing of it may be relied on; part of it may be on the disk all the same.
  case failed(JournalFault)
  /// The file was opened and holds these values.
  case reopened(JournalContents)
}

/// What a journal file held when it was opened.
package struct JournalContents: Sendable {
  package var entries: [JournalEntry] = []
  /// The damaged file that was found instead.
  package var setAside: SetAside?

  package init(entries: [JournalEntry] = [], setAside: SetAside? = nil) {
    self.entries = entries
    self.setAside = setAside
  }
}

/// A damaged file that was moved out of the way; nothing of it is used.
package struct SetAside: Hashable, Sendable {
  /// Where it is now.
  package var path: String
  package var reason: String

  package init(path: String, reason: String) {
    self.path = path
    self.reason = reason
  }
}

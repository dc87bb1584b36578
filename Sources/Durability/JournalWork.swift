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

/// Why the journal cannot write at the moment; it keeps trying.
package enum JournalFault: Error, Hashable, Sendable, CustomStringConvertible {
  case diskFull
  case readOnly
  /// The file was damaged while it was in use.
  case damaged(String)
  /// Any other error of the system or SQLite, with the call.
  case failed(call: String, reason: String)

  package var description: String {
    switch self {
    case .diskFull: "the disk is full"
    case .readOnly: "the disk or the folder is read-only"
    case .damaged(let detail): "the file is damaged: \(detail)"
    case .failed(let call, let reason): "\(call): \(reason)"
    }
  }
}

/// What the journal reports to its owner, in order.
package enum JournalEvent: Hashable, Sendable {
  /// Everything accepted up to this sequence number survives a power cut, was superseded or has
  /// ended: its replies are due.
  case durable(through: UInt64)
  /// Everything up to this number is held in memory only: its replies are due and must say so.
  ///
  /// `overtaken`: keys of which a crash would bring back an older value. Their newer values must
  /// not count as accepted.
  case memoryOnly(through: UInt64, fault: JournalFault, overtaken: [String])
  /// Writing works again.
  case recovered
  /// Send this value of an earlier process once; `remaining` of its time to live is left.
  case replay(JournalEntry, remaining: Duration)
  /// A value of an earlier process that is not sent, and why.
  case expired(JournalEntry, ExpiryReason)
  /// A damaged journal was moved to another name; nothing of it is used.
  case setAside(SetAside)
}

/// Where accepted values outlive this process: the journal's file, or the logs of a cluster.
///
/// A ``JournalPlan`` decides what is written and when; the store does it, one piece of work at a
/// time, and nothing waits for it. What it holds when it is opened is what earlier owners accepted
/// and did not send, the newest value of each key. One owner at a time can write: the journal's by
/// the lock on its file, that of a partition by its claim in the log.
///
/// It belongs to the event loop's thread.
package protocol ValueStore: AnyObject {
  /// Begins to write values and to remove others; call it only after the previous result was
  /// dequeued.
  func submit(_ work: JournalWork)
  /// How pieces of work ended since the last call: stored for certain, or why not.
  func dequeueResults() -> [JournalResult]
  /// Gives up what this process owns, after the current work.
  func beginClosing()
  /// Whether nothing is owned any more.
  var isClosed: Bool { get }
}

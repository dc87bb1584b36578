// Settle
// SPDX-License-Identifier: Apache-2.0

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

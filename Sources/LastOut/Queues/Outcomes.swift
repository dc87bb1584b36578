// Settle
// SPDX-License-Identifier: Apache-2.0

/// The outcome of a cancel.
public enum CancelOutcome: Hashable, Sendable {
  /// The pending task was dropped and its captures are freed.
  case cancelled
  /// The task has already started.
  case alreadyStarted
  /// Nothing was pending.
  case nothing
}

/// The outcome of a flush.
public enum FlushOutcome: Hashable, Sendable {
  /// The pending task has run on the calling thread.
  case ran
  /// The key is running; its pending task runs when that has ended.
  case markedDue
  /// Nothing was pending.
  case nothing
}

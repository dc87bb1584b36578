// Settle
// SPDX-License-Identifier: Apache-2.0

/// What a cancel met.
public enum CancelOutcome: Hashable, Sendable {
  /// The pending task was dropped and what it captured is free.
  case cancelled
  /// Nothing is pending, because the task has started: too late.
  case alreadyStarted
  /// Nothing was pending.
  case nothing
}

/// What a flush met.
public enum FlushOutcome: Hashable, Sendable {
  /// The pending task has run on the caller.
  case ran
  /// The key is running elsewhere; its pending task runs when that has ended.
  case markedDue
  /// Nothing was pending.
  case nothing
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// The outcome of a cancel.
public enum CancelOutcome: Hashable, Sendable {
  /// The pending task was dropped and its captures are freed.
  case cancelled
  /// The task has already started; if it is asynchronous, it is cancelled.
  case alreadyStarted
  /// Nothing was pending.
  case nothing
}

/// The outcome of a flush.
public enum FlushOutcome: Hashable, Sendable {
  /// The pending task has run.
  case ran
  /// The flush could not wait for the task: the caller is a task of the queue and the key is
  /// running, or the flush would wait for itself. The task runs, or follows when the key's run has
  /// ended.
  case markedDue
  /// Nothing was pending, or it was cancelled while the flush waited.
  case nothing
}

/// An event of a queue's task, for a log.
public enum LastOutEvent<Key: Hashable & Sendable>: Sendable {
  /// A task was enqueued for the key.
  case enqueued(Key)
  /// The enqueued task replaced the pending task of the key.
  case replaced(Key)
  /// The pending task of the key was cancelled.
  case cancelled(Key)
  /// The pending task of the key starts.
  case started(Key)
  /// The task of the key has ended, with an error if it threw one.
  case ended(Key, error: (any Error)?)
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// What happens to the tasks of a queue, for a log.
public enum LastOutEvent<Key: Hashable & Sendable>: Sendable {
  /// A change of the key came in.
  case enqueued(Key)
  /// The pending task of the key starts.
  case started(Key)
  /// The task of the key has ended, with an error if it threw one.
  case ended(Key, error: (any Error)?)
}

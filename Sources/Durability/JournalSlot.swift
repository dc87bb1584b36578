// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// What is known of one key.
struct JournalSlot: Sendable {
  /// The newest accepted value that has not been sent.
  var newest: KeptValue?
  /// An earlier process accepted ``newest``, and the owner has not resumed it.
  var isUnresumed = false
  /// An older value that has not been sent either, and may still be: it waits for its turn while
  /// the newest waits for quiet.
  var earlier: KeptValue?
  /// The value that was sent and is not acknowledged.
  var inFlight: KeptValue?
  /// The row that a crash could bring back.
  var disk: DiskRow?
  /// Whether an urgent value has ended that a file may hold which was not read yet.
  var endsUrgent = false
  /// Whether the row may differ from the wanted one, and the key waits for a commit.
  var isDirty = false

  /// The value that the disk should hold.
  var wanted: KeptValue? { newest ?? earlier ?? inFlight }
  var isEmpty: Bool {
    newest == nil && earlier == nil && inFlight == nil && disk == nil && !isDirty
  }

  /// Accepts a newer value; the one before stays unless it is `replaced`.
  mutating func accept(_ value: KeptValue, replacing replaced: UInt64?) {
    if earlier == nil, newest?.sequence != replaced { swap(&earlier, &newest) }
    newest = value
    isUnresumed = false
  }

  /// A value was sent; nothing older will be.
  mutating func sending(_ sequence: UInt64) {
    if newest?.sequence == sequence {
      inFlight = newest
      newest = nil
      earlier = nil
    } else if earlier?.sequence == sequence {
      inFlight = earlier
      earlier = nil
    }
  }

  /// Removes one value; `false` when it is not there.
  mutating func remove(_ sequence: UInt64) -> Bool {
    if newest?.sequence == sequence {
      newest = nil
      isUnresumed = false
    } else if earlier?.sequence == sequence {
      earlier = nil
    } else if inFlight?.sequence == sequence {
      inFlight = nil
    } else {
      return false
    }
    return true
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// Which values of an earlier process are sent.
extension JournalPlan {
  /// How long values of an earlier boot wait for a synchronised clock at most.
  package static let replayPatience: Duration = .seconds(60)
  /// How often the clock is read while they wait.
  static let replayInterval: Duration = .seconds(1)

  /// Whether ``decideReplay(_:)`` has something to decide.
  package var awaitsReplay: Bool { !undecided.isEmpty }

  /// Decides which values of an earlier process are sent; call it when ``replayDeadline`` passes.
  ///
  /// Values whose age is unknown are held until the clock is synchronised, for 60 s and their time
  /// to live at most, and then expire. A value that a newer one has replaced is not mentioned. The
  /// row of an expired value is deleted with the next removal.
  package mutating func decideReplay(_ clock: JournalClock) {
    guard awaitsReplay else { return }
    let wereHeld = holdEnds != nil
    let end = holdEnds ?? clock.moment.advanced(by: Self.replayPatience)
    holdEnds = end
    var deadline = min(end, clock.moment.advanced(by: Self.replayInterval))
    var held: [JournalEntry] = []
    for entry in undecided {
      let key = number(of: entry.key)
      guard isNewest(key, entry.sequence), case .stored(let stamps) = entry.origin else { continue }
      switch ReplayVerdict(of: stamps, ttl: entry.ttl, now: clock) {
      case .send(let remaining): events.append(.replay(entry, remaining: remaining))
      case .unknown where clock.moment < end:
        held.append(entry)
        let left = entry.ttl - .milliseconds(clock.stamps.bootMilliseconds)
        deadline = min(deadline, clock.moment.advanced(by: left))
      case .unknown: expire(entry, key, because: .clockNotSynchronised, at: clock.moment)
      case .expired(let reason):
        // It ran out while it was held: it is unknown when exactly it expired.
        let isUnknown = wereHeld && !clock.isSynchronised
        expire(entry, key, because: isUnknown ? .clockNotSynchronised : reason, at: clock.moment)
      }
    }
    undecided = held
    if held.isEmpty { holdEnds = nil }
    replayDeadline = held.isEmpty ? nil : deadline
  }

  private mutating func expire(
    _ entry: JournalEntry,
    _ key: JournalKey,
    because reason: ExpiryReason,
    at now: Moment
  ) {
    ended(key, entry.sequence, at: now, promptly: false)
    events.append(.expired(entry, reason))
  }

  // MARK: - The owner

  /// The owner makes a stored value a command again.
  ///
  /// - Returns: `false` when a newer value has replaced it, or a command of another key ended it.
  package mutating func resume(_ key: JournalKey, _ sequence: UInt64) -> Bool {
    guard self[key].isUnresumed, isNewest(key, sequence) else { return false }
    self[key].isUnresumed = false
    return true
  }

  /// The owner says that a key's stored value is urgent; it ends if something newer has taken its place
  /// before the file was read.
  package mutating func markUrgent(_ key: JournalKey, at now: Moment) {
    self[key].newest?.isUrgent = true
    self[key].disk?.isUrgent = true
    guard self[key].endsUrgent, self[key].isUnresumed, let value = self[key].newest else { return }
    ended(key, value.sequence, at: now, promptly: true)
  }

  /// Ends a stored value that was not resumed yet and is not newer than `sequence`: a command of
  /// another key takes its place; with `isUrgentOnly`, that of an urgent one.
  ///
  /// Of a file that has not been read, this ends what is found later.
  package mutating func discardUnresumed(
    _ key: JournalKey,
    through sequence: UInt64,
    isUrgentOnly: Bool = false,
    at now: Moment
  ) {
    guard isLoaded else {
      if isUrgentOnly { self[key].endsUrgent = true } else { keys.markDirty(key) }
      return
    }
    guard self[key].isUnresumed, let value = self[key].newest, value.sequence <= sequence,
      value.isUrgent || !isUrgentOnly
    else { return }
    ended(key, value.sequence, at: now, promptly: true)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// The last-out queue as a value: changes with their time go in, runs come out.
///
/// To drive it, first dequeue every run that ``nextRun(at:)`` returns for the current time, because
/// a due timer precedes a change of the same time. Then enqueue the changes, and after each one
/// dequeue what ``nextReady(at:)`` returns: leading values run at once. Then wait until
/// ``nextDeadline``. When a run has ended, call ``finish(_:at:)``. Any call is legal between a run
/// and its end.
///
/// The queue never reads a clock and never goes back in time: a time before the latest one counts
/// as the latest. Every operation takes constant time for keys whose delay is among the first
/// sixteen distinct ones, and logarithmic time for the keys in the heap. A change of a known key
/// does not allocate. An idle key costs eight bytes.
@usableFromInline
@frozen
package struct LastOutCore<Value>: ~Copyable {
  /// The entry of a key, idle or not.
  @usableFromInline
  @frozen
  struct Entry {
    /// The key's slot; -1 while the key is idle.
    @usableFromInline var slot: Int32 = -1
    /// The key's rule.
    @usableFromInline var rule: Int32 = 0

    @inlinable init() {}
  }

  @usableFromInline var entries: Buffer<Entry>
  @usableFromInline var rules = RuleTable()
  @usableFromInline var schedule: Schedule<Value>
  /// The latest time.
  @usableFromInline var latest: UInt64 = 0

  /// Creates an empty queue.
  ///
  /// - Parameters:
  ///   - policy: The policy of keys without their own.
  ///   - capacity: The initial capacity in keys.
  @inlinable
  package init(policy: Policy = .standard, capacity: Int = 64) {
    entries = Buffer(capacity: capacity)
    schedule = Schedule(capacity: capacity)
    rules.add(policy, to: &schedule.lists)
  }

  /// Sets the policy of `key`, from its next change on.
  ///
  /// Other keys have the default policy.
  @usableFromInline
  package mutating func setPolicy(_ policy: Policy, for key: KeyIndex) {
    setRule(addPolicy(policy), for: key)
  }

  /// The number of a policy's rule, for keys that share it; see ``setRule(_:for:)``.
  @usableFromInline
  package mutating func addPolicy(_ policy: Policy) -> Int32 {
    rules.add(policy, to: &schedule.lists)
  }

  /// Sets the policy of `key` by the number that ``addPolicy(_:)`` returned.
  @usableFromInline
  package mutating func setRule(_ number: Int32, for key: KeyIndex) {
    addEntry(of: key)
    entries[key.rawValue].rule = number
  }

  // MARK: Keys and time

  @inlinable
  func position(of key: KeyIndex) -> Int {
    precondition(key.rawValue >= 0, "A key index is never negative.")
    return Int(key.rawValue)
  }

  /// Adds the entry of a new key.
  @inlinable
  mutating func addEntry(of key: KeyIndex) {
    entries.extend(toInclude: position(of: key), with: Entry())
  }

  /// The key's slot; -1 while the key is idle.
  @inlinable
  func slot(of key: KeyIndex) -> Int32 {
    let position = position(of: key)
    return position < entries.count ? entries[position].slot : -1
  }

  /// The key's slot, if it has a pending value.
  @inlinable
  func pendingSlot(of key: KeyIndex) -> Int32? {
    let index = slot(of: key)
    return index >= 0 && schedule[index].isPending ? index : nil
  }

  /// The key's slot; an idle key gets one.
  @inlinable
  @inline(__always)
  mutating func allocateSlot(of key: KeyIndex, at now: UInt64) -> Int32 {
    let known = entries[key.rawValue].slot
    if known >= 0 { return known }
    if schedule.lingering.head >= 0 { reclaim(at: now) }
    let index = schedule.slab.allocate(for: key.rawValue)
    entries[key.rawValue].slot = index
    return index
  }

  /// Frees up to two slots whose burst and interval have ended.
  @inlinable
  mutating func reclaim(at now: UInt64) {
    for _ in 0..<2 {
      let index = schedule.lingering.head
      guard index >= 0 else { return }
      schedule.unlink(index)
      retire(index, at: now)
    }
  }

  /// Frees the slot of an idle key, unless its burst is open or its interval has not ended.
  @inlinable
  mutating func retire(_ index: Int32, at now: UInt64) {
    guard schedule.isSpent(index, at: now) else { return schedule.linger(index) }
    entries[schedule[index].key].slot = -1
    schedule.release(index)
  }

  /// Records the time, which never goes back.
  @inlinable
  @inline(__always)
  mutating func advance(to now: Moment) -> UInt64 {
    if now.nanoseconds > latest { latest = now.nanoseconds }
    return latest
  }
}

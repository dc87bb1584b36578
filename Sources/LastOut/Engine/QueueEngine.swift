// Settle
// SPDX-License-Identifier: Apache-2.0

/// The thread-safe shell around the core: lock, ask, unlock, act.
///
/// Nothing is called and nothing is released while the lock is held. A change that moves the next
/// deadline forward wakes the timekeeper; only the timekeeper arms a timer.
@usableFromInline
package final class QueueEngine<Key: Hashable & Sendable, Value: Sendable>: ServedEngine {
  @usableFromInline typealias Run = LastOutCore<Value>.Run
  @usableFromInline typealias Work = EngineWork<Value>

  @usableFromInline let state: Lock<EngineState<Key, Value>>
  @usableFromInline let time: any Timekeeper
  /// Whether the timekeeper has the machine's clock, which is read directly.
  @usableFromInline let isMonotonic: Bool
  @usableFromInline let place: TaskPlace
  @usableFromInline let perform: @Sendable (QueueEngine, Run, _ start: Moment) -> Void
  /// Receives the keys of values that were cancelled.
  @usableFromInline let onCancel: (@Sendable (Key) -> Void)?

  /// Creates an engine without keys.
  ///
  /// - Parameters:
  ///   - policy: The policy of keys without their own.
  ///   - time: The timekeeper, which serves only this engine.
  ///   - place: Where values run.
  ///   - onCancel: Receives the keys of values that are cancelled.
  ///   - perform: Runs a value that starts at a moment; a run that is not detached ends when this
  ///     returns.
  @usableFromInline
  package init(
    policy: Policy,
    time: any Timekeeper,
    place: TaskPlace,
    onCancel: (@Sendable (Key) -> Void)? = nil,
    perform: @escaping @Sendable (QueueEngine, LastOutCore<Value>.Run, Moment) -> Void
  ) {
    state = Lock(EngineState(policy: policy))
    self.time = time
    isMonotonic = time is DriverSeat
    self.place = place
    self.onCancel = onCancel
    self.perform = perform
    time.attach(self)
  }

  deinit {
    time.stop()
  }

  @inlinable package var now: Moment { isMonotonic ? MonotonicTime.now : time.now }

  @usableFromInline
  package var nextDeadline: Moment? {
    state.withLock { $0.isHeldUp ? nil : $0.core.nextDeadline }
  }

  @inlinable
  package func service() -> Moment? {
    while true {
      let now = self.now
      let (work, next) = state.withLock { state in
        var work = Work()
        state.collectDue(into: &work, at: now, place: place)
        return (work, state.rearm(at: now, place: place))
      }
      let isDone = work.runs.isEmpty
      act(on: work)
      if isDone { return next }
    }
  }

  package func setPolicy(_ policy: Policy, for key: Key) {
    state.withLock { $0.core.setPolicy(policy, for: $0.intern(key)) }
  }

  @usableFromInline
  func removePolicy(for key: Key) {
    state.withLock { state in
      if let key = state.names.find(key) { state.core.setRule(0, for: key) }
    }
  }

  // MARK: Changes

  /// Makes `value` the pending value of `key`; returns whether it replaced another.
  @inlinable
  package func enqueue(_ value: consuming Value, for key: Key, delay: Duration?) -> Bool {
    let now = self.now
    var value = value
    var replaced: Value?
    // Most changes make no work and create none: its lists would cost as much as the change.
    var work: Work?
    let isRenewed = state.withLock { state in
      let key = state.intern(key)
      let isRenewed =
        delay == nil
        && state.core.renew(key, at: now) { current in
          swap(&current, &value)
          return true
        }
      if !isRenewed {
        replaced = state.change(key, to: value, delay, at: now, place: place, &work)
      }
      return isRenewed
    }
    if let work { act(on: work) }
    return isRenewed || replaced != nil
  }

  // MARK: Queries

  @inlinable package var pendingCount: Int {
    state.withLock { $0.core.pendingCount + $0.claims.count }
  }

  /// Whether nothing is pending and nothing runs.
  package var isIdle: Bool {
    state.withLock { state in
      state.core.pendingCount == 0 && state.claims.isEmpty && state.core.runningKeys().isEmpty
    }
  }

  /// The keys with a pending value; the lock is released between groups of them.
  @inlinable package var pendingKeys: [Key] {
    var found = Set<KeyIndex>()
    var place: Int32 = 0
    var isDone = false
    while !isDone {
      let start = place
      let (group, next, count) = state.withLock { state in
        var next = start
        let claimed = start == 0 ? state.claims.keys : []
        let group = claimed + state.core.pendingKeys(from: &next, slots: 4096)
        return (group, next, state.core.slotCount)
      }
      found.formUnion(group)
      place = next
      isDone = Int(next) >= count
      if !isDone { Thread.letOthersIn() }
    }
    var keys: [Key] = []
    keys.reserveCapacity(found.count)
    var rest = found.makeIterator()
    while true {
      var group: [KeyIndex] = []
      while group.count < 1024, let key = rest.next() { group.append(key) }
      if group.isEmpty { return keys }
      keys += state.withLock { [group] state in
        // The number of a key that is no longer pending may be another key's by now.
        group.filter { state.core.isPending($0) || state.claims[$0] != nil }
          .map { state.names.key(of: $0) }
      }
      if keys.count < found.count { Thread.letOthersIn() }
    }
  }

  package func isPending(_ key: Key) -> Bool {
    state.withLock { state in
      state.names.find(key).map { state.core.isPending($0) || state.claims[$0] != nil } ?? false
    }
  }

  package func isRunning(_ key: Key) -> Bool {
    state.withLock { state in
      state.names.find(key).map { state.core.isRunning($0) && state.claims[$0] == nil } ?? false
    }
  }

  package func pendingValue(of key: Key) -> Value? {
    state.withLock { state in
      guard let key = state.names.find(key) else { return nil }
      return state.core.pending(key)?.value ?? state.claims[key]
    }
  }

  /// The key with this number, which is in use.
  @inlinable
  package func key(of index: KeyIndex) -> Key {
    state.withLock { $0.names.key(of: index) }
  }

  /// The number of keys that have an index, in use or not yet reclaimed.
  package var nameCount: Int { state.withLock { $0.names.count } }
}

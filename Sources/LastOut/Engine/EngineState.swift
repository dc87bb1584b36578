// Settle
// SPDX-License-Identifier: Apache-2.0

/// What an engine's lock protects.
@usableFromInline
struct EngineState<Key: Hashable & Sendable, Value: Sendable>: ~Copyable {
  @usableFromInline typealias Run = LastOutCore<Value>.Run
  @usableFromInline typealias Work = EngineWork<Value>

  @usableFromInline var core: LastOutCore<Value>
  @usableFromInline var names = KeyNames<Key>()
  /// The deadline that the timekeeper knows; the largest number for none.
  @usableFromInline var armed = UInt64.max
  /// Whether what is due waits for a thread or an executor, and needs no timer.
  @usableFromInline var isHeldUp = false
  /// How many threads run values of this engine, or are about to.
  @usableFromInline var busy = 0
  /// Whether an executor was asked to call the engine, and has not done so yet.
  @usableFromInline var isCalled = false
  /// Values that a flush has taken and not started yet: a cancel still drops them.
  @usableFromInline var claims: [KeyIndex: Run] = [:]
  /// Values that wait for the threads that were asked for, which is a moment.
  @usableFromInline var assigned: [Run] = []
  @usableFromInline var waiters: [WaiterKeys] = []
  /// Running tasks that the engine may cancel.
  @usableFromInline var tasks: [KeyIndex: OwnedTask] = [:]

  @inlinable
  init(policy: Policy) {
    core = LastOutCore(policy: policy)
  }

  // MARK: What leaves

  /// Takes what is due by time, or has the executor call.
  @inlinable
  mutating func collectDue(into work: inout Work, at now: Moment, place: TaskPlace) {
    switch place {
    case .here:
      // One at a time: a run may replace or cancel what is due with it.
      if let run = core.nextRun(at: now) { work.runs.append(run) }
    case .threads(_, let limit):
      while busy < limit, let run = core.nextRun(at: now) { assign(run, &work) }
    case .elsewhere:
      if !isCalled, let next = core.nextDeadline, next <= now {
        isCalled = true
        work.needsCall = true
      }
    }
  }

  /// Adds what leaves at once, and a wake-up if the next deadline got earlier.
  @inlinable
  mutating func complete(_ work: inout Work, at now: Moment, place: TaskPlace) {
    if core.hasReady { collectReady(into: &work, at: now, place: place) }
    guard !isHeldUp, let next = core.nextDeadline, next.nanoseconds < armed else { return }
    armed = next.nanoseconds
    work.wake = next
  }

  /// The same after a change of `key`, whose deadline alone is new.
  @inlinable
  @inline(__always)
  mutating func completeChange(
    of key: KeyIndex,
    _ work: inout Work,
    at now: Moment,
    place: TaskPlace
  ) {
    if core.hasReady { collectReady(into: &work, at: now, place: place) }
    guard !isHeldUp, let due = core.deadline(of: key), due < armed else { return }
    armed = due
    work.wake = Moment(nanoseconds: due)
  }

  @inlinable
  mutating func collectReady(into work: inout Work, at now: Moment, place: TaskPlace) {
    switch place {
    case .here:
      while let run = core.nextReady(at: now) { work.runs.append(run) }
    case .threads(_, let limit):
      while busy < limit, let run = core.nextReady(at: now) { assign(run, &work) }
    case .elsewhere:
      if !isCalled {
        isCalled = true
        work.needsCall = true
      }
    }
  }

  /// Takes the value of `key` if it should have left before the change that comes now.
  ///
  /// Where values wait for a thread or an executor, the newer one replaces it instead.
  @inlinable
  mutating func collectLate(
    _ key: KeyIndex,
    into work: inout Work,
    at now: Moment,
    place: TaskPlace
  ) {
    switch place {
    case .here(let isExact):
      if !isExact, let run = core.nextRun(of: key, at: now) { work.runs.append(run) }
    case .threads(_, let limit):
      if busy < limit, let run = core.nextRun(of: key, at: now) { assign(run, &work) }
    case .elsewhere: break
    }
  }

  /// Lets one more thread run a value.
  @inlinable
  mutating func assign(_ run: Run, _ work: inout Work) {
    assigned.append(run)
    busy += 1
    work.threads += 1
  }

  /// What the timekeeper has to know; `nil` while what is due waits for a thread.
  @inlinable
  mutating func rearm(at now: Moment, place: TaskPlace) -> Moment? {
    let next = core.nextDeadline
    if let next, next <= now, isFull(place) {
      isHeldUp = true
      return nil
    }
    armed = next?.nanoseconds ?? .max
    return next
  }

  /// A thread is free again or the executor has called: due values may leave by time.
  @inlinable
  mutating func unhold() {
    if isHeldUp {
      isHeldUp = false
      armed = .max
    }
  }

  /// Whether nothing more can leave until a thread is free or the executor calls.
  @inlinable
  func isFull(_ place: TaskPlace) -> Bool {
    switch place {
    case .here: false
    case .threads(_, let limit): busy >= limit
    case .elsewhere: isCalled
    }
  }

  // MARK: Names

  /// The number of `key`; now and then numbers of keys that are idle are given back.
  @inlinable
  mutating func intern(_ key: Key) -> KeyIndex {
    let known = names.count
    let index = names.intern(key)
    if names.count > known, names.isCrowded { reclaim(sparing: index) }
    return index
  }

  @usableFromInline
  mutating func reclaim(sparing index: KeyIndex) {
    names.reclaim { $0 != index && core.isForgettable($0) }
  }
}

/// What was found under an engine's lock and is done after it.
@usableFromInline
struct EngineWork<Value: Sendable>: Sendable {
  /// Values that run on the caller.
  @usableFromInline var runs: [LastOutCore<Value>.Run] = []
  /// How many threads have to come.
  @usableFromInline var threads = 0
  /// The new next deadline, if it is earlier than the one the timekeeper knows.
  @usableFromInline var wake: Moment?
  /// Whether the executor has to call the engine.
  @usableFromInline var needsCall = false
  /// Whom to tell that nothing is left to wait for.
  @usableFromInline var ended: [Waiter] = []

  @inlinable init() {}

  @inlinable var isEmpty: Bool {
    wake == nil && runs.isEmpty && threads == 0 && !needsCall && ended.isEmpty
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// The state that an engine's lock protects.
@usableFromInline
@frozen
struct EngineState<Key: Hashable & Sendable, Value: Sendable>: ~Copyable {
  @usableFromInline typealias Run = LastOutCore<Value>.Run
  @usableFromInline typealias Work = EngineWork<Value>

  @usableFromInline var core: LastOutCore<Value>
  @usableFromInline var names = KeyNames<Key>()
  /// The deadline that the timekeeper is set to; the maximum for none.
  @usableFromInline var armed = UInt64.max
  /// Whether due values wait for a thread or an executor and need no timer.
  @usableFromInline var isHeldUp = false
  /// The number of threads that run values of this engine or are about to.
  @usableFromInline var busy = 0
  /// Whether a call by the executor is outstanding.
  @usableFromInline var isCalled = false
  /// Values that a flush has claimed and not started; a cancel still drops them.
  @usableFromInline var claims = Claims<Value>()
  /// Values that wait for requested threads.
  @usableFromInline var assigned: [Run] = []
  @usableFromInline var waits: [Wait<Key>] = []
  @usableFromInline var outcomeWaits: [KeyIndex: [OutcomeWait]] = [:]
  /// The asynchronous tasks of running keys.
  @usableFromInline var tasks: [KeyIndex: RunTask] = [:]
  /// The number of the newest asynchronous task.
  @usableFromInline var newestTask = 0
  /// Where asynchronous tasks run, once there was one.
  @usableFromInline var taskExecutor: (any TaskExecutor)?

  @inlinable
  init(policy: Policy) {
    core = LastOutCore(policy: policy, capacity: 4)
  }

  // MARK: Changes

  /// Makes `value` the pending value of `key`; returns the replaced or dropped value.
  @inlinable
  @inline(never)
  mutating func change(
    _ key: KeyIndex,
    to value: consuming Value,
    _ delay: Duration?,
    at now: Moment,
    place: TaskPlace,
    _ work: inout Work?
  ) -> Value? {
    // A due timer precedes this change, even if its driver is late.
    if core.isLate(key, at: now) { work = collectLate(key, at: now, place: place) }
    let replaced = core.enqueue(value, for: key, at: now, delay: delay)
    if hasWork(afterChangeOf: key) { completeChange(of: key, &work, at: now, place: place) }
    return replaced
  }

  // MARK: Due values

  /// Removes values that are due, or requests a call by the executor.
  @inlinable
  mutating func collectDue(into work: inout Work, at now: Moment, place: TaskPlace) {
    switch place {
    case .here:
      // One at a time: a run can replace or cancel other due values.
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

  /// Adds values that run at once, and a wake-up if the next deadline moved forward.
  @inlinable
  mutating func complete(_ work: inout Work, at now: Moment, place: TaskPlace) {
    if core.hasReady { collectReady(into: &work, at: now, place: place) }
    guard !isHeldUp, let next = core.nextDeadline, next.nanoseconds < armed else { return }
    armed = next.nanoseconds
    work.wake = next
  }

  /// Whether a change of `key` has made work: a value that runs at once, or an earlier deadline.
  @inlinable
  @inline(__always)
  func hasWork(afterChangeOf key: KeyIndex) -> Bool {
    core.hasReady || !isHeldUp && (core.deadline(of: key) ?? .max) < armed
  }

  /// Adds what a change of `key` made: values that run at once, and a wake-up for an earlier
  /// deadline.
  @inlinable
  @inline(never)
  mutating func completeChange(
    of key: KeyIndex,
    _ work: inout Work?,
    at now: Moment,
    place: TaskPlace
  ) {
    var more = work ?? Work()
    if core.hasReady { collectReady(into: &more, at: now, place: place) }
    if !isHeldUp, let due = core.deadline(of: key), due < armed {
      armed = due
      more.wake = Moment(nanoseconds: due)
    }
    work = more
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

  /// Removes the value of `key` if it was due before the current change.
  ///
  /// If values wait for a thread or an executor, the newer one replaces it instead.
  @inlinable
  @inline(never)
  mutating func collectLate(_ key: KeyIndex, at now: Moment, place: TaskPlace) -> Work {
    var work = Work()
    switch place {
    case .here(let isExact):
      if !isExact, let run = core.nextRun(of: key, at: now) { work.runs.append(run) }
    case .threads(_, let limit):
      if busy < limit, let run = core.nextRun(of: key, at: now) { assign(run, &work) }
    case .elsewhere: break
    }
    return work
  }

  /// Requests one more thread to run a value.
  @inlinable
  mutating func assign(_ run: Run, _ work: inout Work) {
    assigned.append(run)
    busy += 1
    work.threads += 1
  }

  /// The deadline for the timekeeper; `nil` while due values wait for a thread.
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

  /// Records a free thread or a call by the executor: due values can run.
  @inlinable
  mutating func unhold() {
    if isHeldUp {
      isHeldUp = false
      armed = .max
    }
  }

  /// Whether no value can run until a thread is free or the executor calls.
  @inlinable
  func isFull(_ place: TaskPlace) -> Bool {
    switch place {
    case .here: false
    case .threads(_, let limit): busy >= limit
    case .elsewhere: isCalled
    }
  }

  // MARK: Names

  /// The number of `key`; occasionally reclaims numbers of idle keys.
  @inlinable
  @inline(__always)
  mutating func intern(_ key: Key) -> KeyIndex { names.find(key) ?? add(key) }

  @inlinable
  @inline(never)
  mutating func add(_ key: Key) -> KeyIndex {
    let index = names.intern(key)
    if names.isCrowded { reclaim(sparing: index) }
    return index
  }

  @usableFromInline
  mutating func reclaim(sparing index: KeyIndex) {
    names.reclaim { $0 != index && core.isForgettable($0) }
  }
}

/// Actions that are decided under an engine's lock and performed after it.
@usableFromInline
@frozen
struct EngineWork<Value: Sendable>: Sendable {
  /// Values to run on the calling thread.
  @usableFromInline var runs: [LastOutCore<Value>.Run] = []
  /// The number of threads to start.
  @usableFromInline var threads = 0
  /// The next deadline, if it is earlier than the one that the timekeeper is set to.
  @usableFromInline var wake: Moment?
  /// Whether the executor must call the engine.
  @usableFromInline var needsCall = false
  /// Waiters with nothing left to wait for.
  @usableFromInline var ended: [Waiter] = []
  /// Callers whose tasks have ended.
  @usableFromInline var outcomes: [OutcomeWait] = []

  @inlinable init() {}

  @inlinable var isEmpty: Bool {
    wake == nil && runs.isEmpty && threads == 0 && !needsCall && ended.isEmpty
      && outcomes.isEmpty
  }
}

/// Values that a flush has claimed and not started, at most one of each key.
///
/// A sparse set: adding and removing take constant time and hash nothing. Places of keys that are
/// not claimed are stale, so that nothing is cleared.
@usableFromInline
@frozen
struct Claims<Value> {
  @usableFromInline typealias Run = LastOutCore<Value>.Run

  /// Where the claim of each key is in ``runs``, if it is there.
  @usableFromInline var places = KeyArray<Int32>()
  /// In the order of claiming; `nil` where one was removed.
  @usableFromInline var runs: [Run?] = []
  @usableFromInline var count = 0

  @inlinable
  init() {}

  @inlinable var isEmpty: Bool { count == 0 }

  /// The claimed values, in the order of claiming.
  var all: [Run] { runs.compactMap { $0 } }

  @inlinable
  mutating func add(_ run: Run) {
    if runs.count > 2 * count + 64 { compact() }
    places.extend(toInclude: run.key, with: 0)
    places[run.key] = Int32(runs.count)
    runs.append(run)
    count += 1
  }

  /// The claimed value of `key`.
  @inlinable subscript(key: KeyIndex) -> Value? { place(of: key).flatMap { runs[$0]?.value } }

  @inlinable
  mutating func remove(_ key: KeyIndex) -> Run? {
    guard let place = place(of: key) else { return nil }
    let run = runs[place].take()
    count -= 1
    if count == 0 { runs.removeAll(keepingCapacity: true) }
    return run
  }

  /// The keys of the claimed values.
  @inlinable var keys: [KeyIndex] { runs.compactMap { $0?.key } }

  /// Drops the places of removed claims, where flushes overlap for so long that some are always
  /// left.
  @usableFromInline
  mutating func compact() {
    runs = runs.filter { $0 != nil }
    for (place, run) in runs.enumerated() { if let run { places[run.key] = Int32(place) } }
  }

  @inlinable
  func place(of key: KeyIndex) -> Int? {
    guard Int(key.rawValue) < places.count else { return nil }
    let place = Int(places[key])
    return place < runs.count && runs[place]?.key == key ? place : nil
  }
}

extension Claims: Sendable where Value: Sendable {}

/// The numbers of an engine's keys; those of idle keys are reclaimed.
///
/// Strings are stored in a ``KeyTable``, which looks up a known name without allocating.
@usableFromInline
@frozen
struct KeyNames<Key: Hashable & Sendable>: ~Copyable {
  @usableFromInline var texts = KeyTable(capacity: 4)
  @usableFromInline var numbers: [Key: KeyIndex] = [:]
  /// The keys by number, if they are not strings; `nil` for a free number.
  @usableFromInline var keys: [Key?] = []
  @usableFromInline var free: [KeyIndex] = []
  /// The next number to check for reclaiming.
  @usableFromInline var hand = 0

  /// The maximum number of known keys that are not in use.
  static var allowance: Int { 4096 }

  @inlinable init() {}

  @inlinable static var areTexts: Bool { Key.self == String.self }

  /// The number of known keys.
  @inlinable var count: Int { Self.areTexts ? texts.count : numbers.count }

  @inlinable
  mutating func intern(_ key: Key) -> KeyIndex {
    if let text = key as? String { return texts.intern(text) }
    return numbers[key] ?? add(key)
  }

  @inlinable
  func find(_ key: Key) -> KeyIndex? {
    if let text = key as? String { return texts.find(text) }
    return numbers[key]
  }

  @inlinable
  func key(of index: KeyIndex) -> Key {
    if Self.areTexts, let key = texts.name(of: index) as? Key { return key }
    guard let key = keys[Int(index.rawValue)] else {
      preconditionFailure("Key \(index.rawValue) is not known.")
    }
    return key
  }

  @usableFromInline
  mutating func add(_ key: Key) -> KeyIndex {
    let index = free.popLast() ?? KeyIndex(Int32(keys.count))
    if Int(index.rawValue) < keys.count {
      keys[Int(index.rawValue)] = key
    } else {
      keys.append(key)
    }
    numbers[key] = index
    return index
  }

  // MARK: Reclaiming numbers

  /// Whether more keys are known than the allowance.
  @inlinable var isCrowded: Bool { count > Self.crowd }

  @usableFromInline static var crowd: Int { allowance }

  /// Reclaims up to four numbers that `isIdle`; called for each key added while ``isCrowded``.
  @usableFromInline
  mutating func reclaim(where isIdle: (KeyIndex) -> Bool) {
    let size = Self.areTexts ? texts.capacity : keys.count
    for _ in 0..<min(4, size) {
      hand = hand + 1 < size ? hand + 1 : 0
      let index = KeyIndex(Int32(hand))
      guard isKnown(index), isIdle(index) else { continue }
      remove(index)
    }
  }

  private func isKnown(_ index: KeyIndex) -> Bool {
    Self.areTexts ? texts.isUsed(index) : keys[Int(index.rawValue)] != nil
  }

  private mutating func remove(_ index: KeyIndex) {
    if Self.areTexts { return texts.remove(index) }
    guard let key = keys[Int(index.rawValue)] else { return }
    keys[Int(index.rawValue)] = nil
    numbers[key] = nil
    free.append(index)
  }
}

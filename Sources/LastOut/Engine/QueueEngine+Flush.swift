// Settle
// SPDX-License-Identifier: Apache-2.0

extension QueueEngine {
  /// Runs the pending value of `key`, and waits for it and for the run in flight.
  package func flush(_ key: Key) -> FlushOutcome {
    if case .elsewhere(let executor) = place, !executor.isCurrent() {
      let (waiter, isPending, work) = hasten(key)
      act(on: work)
      return wait(for: waiter, isPending: isPending)
    }
    let now = self.now
    let mayWait = mayWaitForOthers
    let (result, waiter) = state.withLock { state -> (LastOutCore<Value>.FlushResult, Waiter?) in
      guard let key = state.names.find(key) else { return (.nothing, nil) }
      if let claim = state.claims.remove(key) { return (.run(claim), nil) }
      let result = state.core.flush(key, at: now)
      if case .run = result { return (result, nil) }
      guard mayWait, state.core.isRunning(key) else { return (result, nil) }
      return (result, state.addWait(for: [key: state.core.isPending(key)]))
    }
    switch result {
    case .run(let run):
      let sleeps = time.sleeps
      var awaited = Awaited.yes
      execute(run, awaited: &awaited)
      guard let waiter = awaited.waiter else { return .ran }
      return block(on: waiter, sleeps: sleeps).late.isEmpty ? .ran : .markedDue
    case .markedDue: return wait(for: waiter, isPending: true)
    case .nothing: return wait(for: waiter, isPending: false)
    }
  }

  /// Waits for a run, and for the pending value behind it.
  private func wait(for waiter: Waiter?, isPending: Bool) -> FlushOutcome {
    guard let waiter else { return isPending ? .markedDue : .nothing }
    let (late, hasDropped) = block(on: waiter)
    if !isPending || hasDropped { return .nothing }
    return late.isEmpty ? .ran : .markedDue
  }

  /// Runs all pending values, once per key, and waits for them, for running values and for those
  /// queued behind them; inside a run of this engine it waits only for the runs that it starts.
  ///
  /// - Parameter timeout: How long to wait.
  /// - Returns: The keys whose values had not run when it returned.
  @inlinable
  package func flushAll(timeout: Duration? = nil) -> [Key] {
    let sleeps = time.sleeps
    let deadline = timeout.map { MonotonicTime.now.advanced(by: $0) }
    if usesCaller(until: deadline) {
      guard let waiter = runClaims(claimAll()) else { return [] }
      return block(on: waiter, sleeps: sleeps).late
    }
    let (waiter, _, work) = hasten()
    guard let waiter else { return [] }
    if let timeout, timeout <= .zero {
      let late = state.withLock { $0.endWait(waiter).late }
      act(on: work)
      return late
    }
    act(on: work)
    switch place {
    case .here: break
    // One more thread than the limit, in case tasks block all of these.
    case .threads(let pool, _): pool.submit(FlushHelper(self))
    case .elsewhere(let executor): if executor.isCurrent() { help(until: deadline) }
    }
    return block(on: waiter, until: deadline).late
  }

  /// Whether a flush runs values on the caller, one after the other.
  @inlinable
  func usesCaller(until deadline: Moment?) -> Bool {
    switch place {
    case .here: true
    case .threads: deadline == nil
    case .elsewhere: false
    }
  }

  /// Whether the caller can wait for runs that it has not started.
  ///
  /// A run cannot wait for itself, and on a test clock nothing ends by itself.
  @usableFromInline var mayWaitForOthers: Bool {
    if case .here = place { return false }
    return !RunMark.isInside(self)
  }

  // MARK: On the caller

  /// Claims every pending value whose key is idle, and marks the others due.
  ///
  /// - Returns: The keys of the claimed values, and a waiter for the others.
  @inlinable
  func claimAll() -> (keys: [KeyIndex], waiter: Waiter?) {
    let now = self.now
    let mayWait = mayWaitForOthers
    return state.withLock { state in
      var awaited: [KeyIndex: Bool] = [:]
      if mayWait { for key in state.core.runningKeys() { awaited[key] = false } }
      let pending = state.core.pendingKeysInOrder()
      var claimed: [KeyIndex] = []
      claimed.reserveCapacity(pending.count)
      for key in pending {
        switch state.core.flush(key, at: now) {
        case .run(let run):
          state.claims.add(run)
          claimed.append(key)
        case .markedDue: if mayWait { awaited[key] = true }
        case .nothing: break
        }
      }
      return (claimed, awaited.isEmpty ? nil : state.addWait(for: awaited, isOpen: true))
    }
  }

  /// Runs claimed values; returns the waiter, which also waits for those that became tasks.
  @inlinable
  func runClaims(_ claims: (keys: [KeyIndex], waiter: Waiter?)) -> Waiter? {
    var awaited = claims.waiter.map { Awaited.by($0) } ?? .yes
    var place = 0
    var ended: KeyIndex?
    while let (run, now) = nextClaim(of: claims.keys, from: &place, after: ended) {
      let key = run.key
      ended = start(run, at: now, awaited: &awaited) ? nil : key
    }
    return awaited.waiter
  }

  /// Ends a run of the caller; returns the next claimed value that is not cancelled, and the time.
  @inlinable
  func nextClaim(
    of keys: [KeyIndex],
    from place: inout Int,
    after ended: KeyIndex?
  ) -> (Run, Moment)? {
    guard ended != nil || place < keys.count else { return nil }
    let now = self.now
    let start = place
    let (next, end, work) = state.withLock { state in
      var work = Work()
      if let ended {
        state.finish(ended, into: &work, at: now)
        state.complete(&work, at: now, place: self.place)
      }
      var place = start
      var next: Run?
      while next == nil, place < keys.count {
        next = state.claims.remove(keys[place])
        place += 1
      }
      return (next, place, work)
    }
    place = end
    if !work.isEmpty { act(on: work) }
    return next.map { ($0, now) }
  }

  // MARK: Where values run by default

  /// Makes the pending value of one key, or of all, due.
  ///
  /// - Returns: A waiter for these values and for runs in flight, `nil` for none; whether any value
  ///   was pending; and the work to do.
  @usableFromInline
  func hasten(_ only: Key? = nil) -> (waiter: Waiter?, isPending: Bool, work: Work) {
    let now = self.now
    let isInside = RunMark.isInside(self)
    return state.withLock { state in
      var work = Work()
      var awaited: [KeyIndex: Bool] = [:]
      let keys = only.map { state.names.find($0).map { [$0] } ?? [] }
      let running = keys?.filter { state.core.isRunning($0) } ?? state.core.runningKeys()
      let pending = keys?.filter { state.core.isPending($0) } ?? state.core.pendingKeys()
      if !isInside { for key in running { awaited[key] = false } }
      for key in pending {
        let isRunning = state.core.isRunning(key)
        if !isInside || !isRunning { awaited[key] = isRunning }
        state.core.expedite(key, at: now)
      }
      let waiter = awaited.isEmpty ? nil : state.addWait(for: awaited)
      state.complete(&work, at: now, place: place)
      return (waiter, !pending.isEmpty, work)
    }
  }

  /// Runs values that are ready, on the calling thread.
  @usableFromInline
  func help(until deadline: Moment? = nil) {
    while deadline.map({ MonotonicTime.now < $0 }) ?? true {
      let now = self.now
      guard let run = state.withLock({ $0.core.nextReady(at: now) }) else { return }
      execute(run)
    }
  }

  /// Makes all pending values due, and waits for them and for running values; inside a run of this
  /// engine it waits only for the runs that it starts.
  package func drain() async {
    let (waiter, _, work) = hasten()
    act(on: work)
    guard let waiter else { return }
    WaitGraph.enter(waiter, of: self, holding: RunMark.runs)
    await waiter.wait()
    WaitGraph.leave(waiter)
    _ = state.withLock { $0.endWait(waiter) }
  }

  // MARK: Waiting

  /// Blocks the thread until a wait is over.
  ///
  /// - Parameters:
  ///   - waiter: What to wait for.
  ///   - deadline: When to give up; `nil` for never.
  ///   - sleeps: How often tasks had slept on the clock when the flush began. On a test clock the
  ///     wait ends when one more does, because only the caller may be able to wake it.
  /// - Returns: The keys whose values have not run, and whether one was dropped.
  @usableFromInline
  func block(
    on waiter: Waiter,
    until deadline: Moment? = nil,
    sleeps: Int = 0
  ) -> (late: [Key], hasDropped: Bool) {
    let isOnMain = Thread.isMain
    let work = state.withLock { state in
      var work = Work()
      state.close(waiter, isOnMain: isOnMain, into: &work)
      return work
    }
    act(on: work)
    var held = RunMark.runs
    if isOnMain { held.append(.main) }
    if case .elsewhere(let executor) = place, executor.isCurrent() { held.append(executor.node) }
    WaitGraph.enter(waiter, of: self, holding: held)
    PoolExecutor.blocking {
      if case .here = place {
        while time.sleeps == sleeps {
          if waiter.wait(until: MonotonicTime.now.advanced(by: .milliseconds(1))) { break }
        }
      } else {
        _ = waiter.wait(until: deadline)
      }
    }
    WaitGraph.leave(waiter)
    return state.withLock { $0.endWait(waiter) }
  }
}

/// A thread of a flush with a timeout, beside those of the engine.
@usableFromInline
final class FlushHelper<Key: Hashable & Sendable, Value: Sendable>: PoolWork {
  private let engine: QueueEngine<Key, Value>

  @usableFromInline
  init(_ engine: QueueEngine<Key, Value>) {
    self.engine = engine
  }

  @usableFromInline
  func work() { engine.help() }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

extension QueueEngine {
  /// Runs the pending value of `key` on the calling thread.
  package func flush(_ key: Key) -> FlushOutcome {
    let now = time.now
    let result = state.withLock { state -> LastOutCore<Value>.FlushResult in
      guard let key = state.names.find(key) else { return .nothing }
      if let claim = state.claims.remove(key) { return .run(claim) }
      return state.core.flush(key, at: now)
    }
    switch result {
    case .run(let run):
      execute(run)
      return .ran
    case .markedDue: return .markedDue
    case .nothing: return .nothing
    }
  }

  /// Runs all pending values, once per key, on the calling thread, and waits for running values and
  /// those queued behind them; inside a run of this engine it does not wait.
  ///
  /// - Parameter timeout: How long to run values and to wait.
  /// - Returns: The keys whose values had not run when the timeout passed.
  @inlinable
  package func flushAll(timeout: Duration? = nil) -> [Key] {
    let deadline = timeout.map { MonotonicTime.now.advanced(by: $0) }
    let (claimed, waiter) = claimAll(waits: mayWait)
    let late = runClaims(claimed, until: deadline)
    guard let waiter, !waiter.wait(until: deadline) else { return late }
    return late + state.withLock { $0.giveUp(waiter) }
  }

  /// Whether the caller can wait for runs of this engine.
  ///
  /// A run cannot wait for itself, and on a test clock nothing ends by itself.
  @usableFromInline var mayWait: Bool {
    if case .here = place { return false }
    return !RunMark.isInside(self)
  }

  /// Claims every pending value whose key is idle, and marks the others due.
  ///
  /// - Returns: The keys of the claimed values, and a waiter for the others.
  @inlinable
  func claimAll(waits: Bool) -> (keys: [KeyIndex], waiter: Waiter?) {
    let now = time.now
    return state.withLock { state in
      var awaited: [KeyIndex: Bool] = [:]
      if waits { for key in state.core.runningKeys() { awaited[key] = false } }
      let pending = state.core.pendingKeysInOrder()
      var claimed: [KeyIndex] = []
      claimed.reserveCapacity(pending.count)
      for key in pending {
        switch state.core.flush(key, at: now) {
        case .run(let run):
          state.claims.add(run)
          claimed.append(key)
        case .markedDue: if waits { awaited[key] = true }
        case .nothing: break
        }
      }
      return (claimed, state.addWaiter(for: awaited))
    }
  }

  /// Runs claimed values until the deadline; other threads run the rest.
  ///
  /// - Returns: The keys of the rest.
  @inlinable
  func runClaims(_ keys: [KeyIndex], until deadline: Moment?) -> [Key] {
    var place = 0
    var ended: KeyIndex?
    while let (run, now) = nextClaim(of: keys, from: &place, after: ended) {
      if let deadline, deadline <= MonotonicTime.now {
        return [key(of: run.key)] + handOver(run, and: keys[place...])
      }
      let key = run.key
      ended = start(run, at: now) ? nil : key
    }
    return []
  }

  /// Ends a run of the caller; returns the next claimed value that is not cancelled, and the time.
  @inlinable
  func nextClaim(
    of keys: [KeyIndex],
    from place: inout Int,
    after ended: KeyIndex?
  ) -> (Run, Moment)? {
    guard ended != nil || place < keys.count else { return nil }
    let now = time.now
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

  /// Runs claimed values where tasks run by default.
  @usableFromInline
  func handOver(_ first: Run, and keys: ArraySlice<KeyIndex>) -> [Key] {
    let (names, work) = state.withLock { state in
      var work = Work()
      var names: [Key] = []
      var runs = [first]
      for key in keys {
        guard let run = state.claims.remove(key) else { continue }
        names.append(state.names.key(of: key))
        runs.append(run)
      }
      if case .threads = place {
        for run in runs { state.assign(run, &work) }
      } else {
        work.runs = runs
      }
      return (names, work)
    }
    act(on: work)
    return names
  }

  /// Runs all pending values where tasks run by default, and waits for them and running values; inside
  /// a run of this engine it does not wait.
  package func drain() async {
    let now = time.now
    let waits = !RunMark.isInside(self)
    let (waiter, work) = state.withLock { state in
      var work = Work()
      var awaited: [KeyIndex: Bool] = [:]
      for key in state.core.runningKeys() { awaited[key] = false }
      for key in state.core.pendingKeys() {
        awaited[key] = state.core.isRunning(key)
        state.core.expedite(key, at: now)
      }
      let waiter = waits ? state.addWaiter(for: awaited) : nil
      state.complete(&work, at: now, place: place)
      return (waiter, work)
    }
    act(on: work)
    guard let waiter else { return }
    await waiter.wait()
    _ = state.withLock { $0.giveUp(waiter) }
  }
}

extension EngineState {
  /// A waiter for the awaited runs; `nil` if there are none.
  @usableFromInline
  mutating func addWaiter(for keys: [KeyIndex: Bool]) -> Waiter? {
    guard !keys.isEmpty else { return nil }
    let waiter = Waiter()
    waiters.append(WaiterKeys(waiter: waiter, keys: keys))
    return waiter
  }
}

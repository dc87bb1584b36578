// Settle
// SPDX-License-Identifier: Apache-2.0

/// Waits until the runs of some keys have ended.
@usableFromInline
package final class Waiter: Sendable {
  private struct State: ~Copyable {
    var hasEnded = false
    var continuation: CheckedContinuation<Void, Never>?
    /// Work for the thread that waits.
    var jobs: [MainJob] = []
  }

  private enum Step {
    case ended
    case late
    case job(MainJob)
  }

  private let state = Monitor(State())

  /// Ends the wait, because nothing is left to wait for or it was given up.
  func end() {
    let continuation = state.withLock { state in
      state.hasEnded = true
      return state.continuation.take()
    }
    state.broadcast()
    continuation?.resume()
  }

  /// Makes the thread that waits run a task.
  func add(_ job: MainJob) {
    state.withLock { $0.jobs.append(job) }
    state.broadcast()
  }

  /// Blocks the thread; `false` if the deadline passed first.
  func wait(until deadline: Moment?) -> Bool {
    while true {
      let step = state.wait { state -> WaitStep<Step> in
        if let job = state.jobs.popLast() { return .done(.job(job)) }
        if state.hasEnded { return .done(.ended) }
        if let deadline, deadline <= MonotonicTime.now { return .done(.late) }
        return .wait(until: deadline)
      }
      switch step {
      case .job(let job): job()
      case .ended: return true
      case .late: return false
      }
    }
  }

  /// Suspends the task until the end of the wait or its cancellation.
  func wait() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isLate = state.withLock { state in
          if !state.hasEnded { state.continuation = continuation }
          return state.hasEnded
        }
        if isLate { continuation.resume() }
      }
    } onCancel: {
      end()
    }
  }
}

/// Whether a flush waits for a run that becomes a task.
@usableFromInline
@frozen
package enum Awaited: Sendable {
  case no
  /// It waits, and makes a waiter with the first such run.
  case yes
  /// It waits with this waiter.
  case by(Waiter)

  @usableFromInline var waiter: Waiter? {
    if case .by(let waiter) = self { waiter } else { nil }
  }
}

/// What a waiter waits for.
@usableFromInline
@frozen
struct Wait<Key: Sendable>: Sendable {
  let waiter: Waiter
  /// For each awaited key, whether its pending value is awaited after its run.
  var keys: [KeyIndex: Bool]
  /// Whether the flush still starts runs, which it may have to wait for.
  var isOpen: Bool
  /// Whether the main thread waits; meanwhile it runs tasks of the main actor.
  var isOnMain = false
  /// The keys that it does not wait for, because they wait for it.
  var refused: [Key] = []
  /// Whether an awaited value was dropped.
  var hasDropped = false
}

extension EngineState {
  /// Adds a wait for some keys; see ``Wait``.
  @usableFromInline
  mutating func addWait(for keys: [KeyIndex: Bool], isOpen: Bool = false) -> Waiter {
    let waiter = Waiter()
    waits.append(Wait(waiter: waiter, keys: keys, isOpen: isOpen))
    return waiter
  }

  /// Makes the flush that started the run of `key` wait for its end.
  mutating func await(_ key: KeyIndex, by awaited: inout Awaited) {
    switch awaited {
    case .no: break
    case .yes: awaited = .by(addWait(for: [key: false], isOpen: true))
    case .by(let waiter):
      if let place = place(of: waiter) { waits[place].keys[key] = false }
    }
  }

  /// Ends the phase in which a flush starts runs; now its thread waits.
  mutating func close(_ waiter: Waiter, isOnMain: Bool, into work: inout Work) {
    guard let place = place(of: waiter) else { return }
    waits[place].isOpen = false
    waits[place].isOnMain = isOnMain
    if isOnMain {
      for key in waits[place].keys.keys {
        if let job = tasks[key]?.needs.mainJob { waiter.add(job) }
      }
    }
    if waits[place].keys.isEmpty { work.ended.append(waiter) }
  }

  /// Makes the main thread do the rest of the run of `key`, if it waits for it.
  func offer(_ job: MainJob, of key: KeyIndex) {
    for wait in waits where wait.isOnMain && wait.keys[key] != nil { wait.waiter.add(job) }
  }

  /// Records that the run of `key` has ended, or that its value was dropped while it did not run.
  @inlinable
  mutating func recordEnd(of key: KeyIndex, isDrop: Bool = false, into work: inout Work) {
    if !waits.isEmpty { endWaits(for: key, isDrop: isDrop, into: &work) }
    if !outcomeWaits.isEmpty { endOutcomeWaits(for: key, into: &work) }
  }

  @usableFromInline
  mutating func endWaits(for key: KeyIndex, isDrop: Bool, into work: inout Work) {
    for place in waits.indices {
      guard let isFollowed = waits[place].keys[key] else { continue }
      if isFollowed, core.isReady(key) {
        waits[place].keys[key] = false
        continue
      }
      if isDrop || isFollowed { waits[place].hasDropped = true }
      remove([key], from: place, into: &work)
    }
  }

  /// Makes a waiter not wait for some keys.
  mutating func remove(_ keys: Set<KeyIndex>, from place: Int, into work: inout Work) {
    for key in keys { waits[place].keys[key] = nil }
    if waits[place].keys.isEmpty, !waits[place].isOpen { work.ended.append(waits[place].waiter) }
  }

  /// Removes a wait; returns the names of the keys that have not ended, and whether one was
  /// dropped.
  @usableFromInline
  mutating func endWait(_ waiter: Waiter) -> (late: [Key], hasDropped: Bool) {
    guard let place = place(of: waiter) else { return ([], false) }
    let wait = waits.remove(at: place)
    return (wait.refused + wait.keys.keys.map { names.key(of: $0) }, wait.hasDropped)
  }

  func place(of waiter: Waiter) -> Int? { waits.firstIndex { $0.waiter === waiter } }

  // MARK: Outcomes of tasks

  /// Collects the callers that wait for the outcome of a task of `key` that has ended.
  @usableFromInline
  mutating func endOutcomeWaits(for key: KeyIndex, into work: inout Work) {
    guard let found = outcomeWaits[key] else { return }
    let left = found.filter { $0.run.result == nil }
    outcomeWaits[key] = left.isEmpty ? nil : left
    work.outcomes += found.filter { $0.run.result != nil }
  }
}

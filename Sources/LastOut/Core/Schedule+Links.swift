// Settle
// SPDX-License-Identifier: Apache-2.0

extension Schedule {
  /// Links a slot with a pending value where its deadline belongs.
  @inlinable
  @inline(__always)
  mutating func link(_ index: Int32, rule: Rule, at now: UInt64) {
    let earliest = slab.intervalEnd(of: index, interval: rule.interval)
    if slab[index].isUrgent {
      guard slab[index].phase != .ready, slab[index].phase != .blocked else { return }
      guard earliest <= now else { return linkIntoHeap(index, due: earliest) }
      return endWait(of: index, due: min(slab.extras[index].due, now))
    }
    let due = rule.due(quietEnd: slab[index].quietEnd, waitStart: slab[index].waitStart)
    guard earliest <= due, rule.quietList >= 0, slab[index].maxWaitList == rule.maxWaitList,
      rule.span == nil || rule.maxWaitList >= 0
    else { return linkIntoHeap(index, due: max(due, earliest)) }
    if slab[index].phase != .running { unlink(index) }
    linkIntoQuiet(index, list: rule.quietList)
  }

  /// Links a slot that is in no list at the end of a quiet list.
  @inlinable
  @inline(__always)
  mutating func linkIntoQuiet(_ index: Int32, list: Int8) {
    slab[index].phase = .quiet
    slab[index].quietList = list
    slab.append(index, to: &lists[list].quiet)
  }

  /// Moves a slot in a quiet list to the end of it, because its quiet period starts again.
  @inlinable
  @inline(__always)
  mutating func moveToTail(_ index: Int32, of list: Int8) {
    slab.moveToTail(index, of: &lists[list].quiet)
  }

  @inlinable
  @inline(__always)
  mutating func unlinkFromQuiet(_ index: Int32) {
    slab.remove(index, from: &lists[slab[index].quietList].quiet)
  }

  @inlinable
  mutating func linkIntoHeap(_ index: Int32, due: UInt64) {
    slab.setDue(due, of: index)
    if slab[index].phase == .heaped { return heap.advance(index, due: due, in: &slab) }
    unlink(index)
    slab[index].phase = .heaped
    heap.push(index, due: due, in: &slab)
  }

  /// Removes the slot from the list of its phase.
  @inlinable
  mutating func unlink(_ index: Int32) {
    switch slab[index].phase {
    case .free, .running, .blocked: break
    case .lingering: slab.remove(index, from: &lingering)
    case .quiet: unlinkFromQuiet(index)
    case .heaped: heap.remove(index, in: &slab)
    case .ready: slab.remove(index, from: &ready)
    }
  }

  // MARK: Due values

  /// Makes the value of a slot skip the quiet period: from `now`, only an interval delays it.
  @inlinable
  mutating func skipQuiet(of index: Int32, at now: UInt64) {
    slab[index].isUrgent = true
    slab.setDue(now, of: index)
    // A value that was due behind a run is replaced; the new one may have to wait longer.
    if slab[index].phase == .blocked { slab[index].phase = .running }
  }

  /// Ends the wait of a value, also for its interval.
  @inlinable
  mutating func expedite(_ index: Int32, at now: UInt64) {
    slab[index].isUrgent = true
    endWait(of: index, due: min(due(of: index), now))
  }

  /// Makes a value ready, or blocks it until the run of its key has ended.
  @inlinable
  mutating func endWait(of index: Int32, due: UInt64) {
    slab.setDue(due, of: index)
    unlink(index)
    unlinkMaxWait(index)
    if slab[index].isRunning { slab[index].phase = .blocked } else { appendToReady(index) }
  }

  /// Blocks a due value if its key is running.
  @inlinable
  @inline(__always)
  mutating func deferIfRunning(_ index: Int32) -> Bool {
    guard slab[index].isRunning else { return false }
    endWait(of: index, due: due(of: index))
    return true
  }

  @inlinable
  mutating func appendToReady(_ index: Int32) {
    slab[index].phase = .ready
    slab.append(index, to: &ready)
  }

  // MARK: The list of `maxWait`

  /// Links a slot at the end of a `maxWait` list if its wait starts now; -1 for no list.
  ///
  /// A slot whose wait started earlier stays if it is in this list. At the end of another list it
  /// would be out of order: its value waits in the heap instead.
  @inlinable
  @inline(__always)
  mutating func linkMaxWait(_ index: Int32, list: Int8, at now: UInt64) {
    let isNew = slab[index].waitStart == now
    guard isNew || slab[index].maxWaitList != list else { return }
    unlinkMaxWait(index)
    guard isNew, list >= 0 else { return }
    slab[index].maxWaitList = list
    slab.appendMaxWait(index, to: &lists[list].maxWait)
  }

  @inlinable
  @inline(__always)
  mutating func unlinkMaxWait(_ index: Int32) {
    let list = slab[index].maxWaitList
    guard list >= 0 else { return }
    slab.removeMaxWait(index, from: &lists[list].maxWait)
    slab[index].maxWaitList = -1
  }

  // MARK: Idle slots

  /// Whether a slot without a value and a run has no state: no open burst and no interval.
  @inlinable
  @inline(__always)
  func isSpent(_ index: Int32, at now: UInt64) -> Bool {
    slab[index].hasEnded(at: now) && !slab.isSpaced(index, at: now)
  }

  /// Keeps a slot without a value and a run until its burst and its interval have ended.
  @inlinable
  mutating func linger(_ index: Int32) {
    slab[index].phase = .lingering
    slab.append(index, to: &lingering)
  }

  /// Frees a slot without a value and a run.
  @inlinable
  @inline(__always)
  mutating func release(_ index: Int32) {
    unlinkMaxWait(index)
    slab.release(index)
  }
}

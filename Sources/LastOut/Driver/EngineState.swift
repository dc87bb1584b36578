// Settle
// SPDX-License-Identifier: Apache-2.0

/// What an engine's lock protects.
struct EngineState: ~Copyable {
  var core: LastOutCore<Job>
  var names = KeyTable()
  /// The deadline that the timekeeper knows; the largest number for none.
  var armed = UInt64.max
  /// Keys without a name that wait for their next owner.
  private var freeKeys: [KeyIndex] = []
  /// Keys without an owner whose last run has not ended.
  private var retiring: Set<KeyIndex> = []
  private var leasedKeys: Int32 = 0

  init(policy: Policy) {
    core = LastOutCore(policy: policy)
  }

  mutating func collectDue(into work: inout QueueEngine.Work, at now: Moment, limit: Int) {
    while work.runs.count < limit, let run = core.nextRun(at: now) { work.runs.append(run) }
  }

  /// Adds what leaves at once, and a wake-up if the next deadline got earlier.
  mutating func complete(_ work: inout QueueEngine.Work, at now: Moment) {
    while let run = core.nextReady(at: now) { work.runs.append(run) }
    guard let next = core.nextDeadline, next.nanoseconds < armed else { return }
    armed = next.nanoseconds
    work.wake = next
  }

  // MARK: Keys without a name

  /// A key of its own for one owner; an engine uses either these or names.
  mutating func leaseKey() -> KeyIndex {
    if let key = freeKeys.popLast() { return key }
    leasedKeys += 1
    return KeyIndex(leasedKeys - 1)
  }

  mutating func retireKey(_ key: KeyIndex) {
    retiring.insert(key)
    recycleIfRetired(key)
  }

  /// Lets the key have a new owner if it has lost its old one and is idle.
  mutating func recycleIfRetired(_ key: KeyIndex) {
    guard !retiring.isEmpty, retiring.contains(key), !core.isRunning(key), !core.isPending(key)
    else { return }
    retiring.remove(key)
    _ = core.cancel(key)  // Nothing is pending; this closes the burst.
    freeKeys.append(key)
  }
}

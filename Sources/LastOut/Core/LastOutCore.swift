// Settle
// SPDX-License-Identifier: Apache-2.0

/// The last-out queue as a value: changes with their time go in, runs come out.
///
/// To drive it, first dequeue every run that ``nextRun(at:)`` returns for the current time, because a
/// due timer precedes a change of the same time. Then enqueue the changes, and after each one dequeue
/// what ``nextReady(at:)`` returns: leading values run at once. Then wait until ``nextDeadline``. When
/// a run has ended, call ``finish(_:at:)``. Any call is legal between a run and its end.
///
/// The queue never reads a clock and never goes back in time: a time before the latest one counts as
/// the latest. Every operation takes constant time for keys whose delay is among the first sixteen
/// distinct ones, and logarithmic time for the keys in the heap. A change of a known key does not
/// allocate. An idle key costs eight bytes.
@usableFromInline
package struct LastOutCore<Value>: ~Copyable {
  /// The entry of a key, idle or not.
  @usableFromInline
  struct Entry {
    /// The key's slot; -1 while the key is idle.
    @usableFromInline var slot: Int32 = -1
    /// The key's rule.
    @usableFromInline var rule: Int32 = 0

    @inlinable init() {}
  }

  @usableFromInline var entries: Buffer<Entry>
  @usableFromInline var slab: Slab<Value>
  /// The rule of every distinct policy; the first is the default.
  @usableFromInline var rules = Buffer<Rule>(capacity: 4)
  @usableFromInline var ruleNumbers: [Policy: Int32] = [:]
  @usableFromInline var lists = Buffer<DeadlineList>(capacity: DeadlineList.limit)
  @usableFromInline var heap = DeadlineHeap()
  /// Slots that are ready to run, in the order in which they became due.
  @usableFromInline var ready = SlotList()
  /// Slots with neither a value nor a run, whose burst may still be open.
  @usableFromInline var lingering = SlotList()
  /// Whether any policy has an interval between runs.
  @usableFromInline var isSpacing = false
  /// The latest time.
  @usableFromInline var latest: UInt64 = 0

  /// The number of slots with a pending value.
  @usableFromInline var pendingSlots = 0

  /// Creates an empty queue.
  ///
  /// - Parameters:
  ///   - policy: The policy of keys without their own.
  ///   - capacity: The initial capacity in keys.
  @inlinable
  package init(policy: Policy = .standard, capacity: Int = 64) {
    entries = Buffer(capacity: capacity)
    slab = Slab(capacity: capacity)
    _ = rule(for: policy)
  }

  // MARK: Policies

  /// Sets the policy of `key`, from its next change on.
  ///
  /// Other keys have the default policy.
  @usableFromInline
  package mutating func setPolicy(_ policy: Policy, for key: KeyIndex) {
    let number = rule(for: policy)
    entries.extend(toInclude: position(of: key), with: Entry())
    entries[key.rawValue].rule = number
  }

  @usableFromInline
  mutating func rule(for policy: Policy) -> Int32 {
    if let known = ruleNumbers[policy] { return known }
    var rule = Rule(policy)
    rule.quietList = list(for: rule.delay, interval: rule.interval)
    if let span = rule.span { rule.baseList = list(for: span, interval: 0) }
    if rule.interval > 0 { isSpacing = true }
    let number = Int32(rules.count)
    rules.append(rule)
    ruleNumbers[policy] = number
    return number
  }

  /// The rule for one change of `key`, with the delay of the change if it has one.
  @inlinable
  func rule(of key: KeyIndex, delay: Duration?) -> Rule {
    var rule = rules[entries[key.rawValue].rule]
    guard let delay else { return rule }
    rule.delay = delay.queueNanoseconds
    rule.quietList = knownList(for: rule.delay, interval: rule.interval)
    if let maxWait = rule.maxWait {
      let span = max(maxWait, rule.delay)
      rule.baseList = knownList(for: span, interval: 0)
      rule.span = span
    }
    return rule
  }

  /// The list for a duration, which is added if there is room; otherwise -1.
  @usableFromInline
  mutating func list(for span: UInt64, interval: UInt64) -> Int8 {
    let known = knownList(for: span, interval: interval)
    guard known < 0, lists.count < DeadlineList.limit else { return known }
    lists.append(DeadlineList(span: span, interval: interval))
    return Int8(lists.count - 1)
  }

  @inlinable
  func knownList(for span: UInt64, interval: UInt64) -> Int8 {
    for number in 0..<lists.count
    where lists[number].span == span && lists[number].interval == interval {
      return Int8(number)
    }
    return -1
  }

  // MARK: Keys and time

  @inlinable
  func position(of key: KeyIndex) -> Int {
    precondition(key.rawValue >= 0, "A key index is never negative.")
    return Int(key.rawValue)
  }

  /// The key's slot; -1 while the key is idle.
  @inlinable
  func slot(of key: KeyIndex) -> Int32 {
    let position = position(of: key)
    return position < entries.count ? entries[position].slot : -1
  }

  /// When the pending value of a slot is due.
  @inlinable
  func due(of index: Int32) -> UInt64 {
    slab[index].phase == .quiet ? quietDue(of: index) : slab.extras[index].due
  }

  /// The same for a slot in a quiet list.
  @inlinable
  @inline(__always)
  func quietDue(of index: Int32) -> UInt64 {
    let list = slab[index].baseList
    let quietEnd = slab[index].quietEnd
    return list < 0
      ? quietEnd : min(quietEnd, slab[index].base.saturatingAdd(lists[Int(list)].span))
  }

  /// Records the time, which never goes back.
  @inlinable
  @inline(__always)
  mutating func advance(to now: Moment) -> UInt64 {
    if now.nanoseconds > latest { latest = now.nanoseconds }
    return latest
  }
}

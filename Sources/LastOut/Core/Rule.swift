// Settle
// SPDX-License-Identifier: Apache-2.0

/// A policy in nanoseconds, with the lists of its deadlines.
@usableFromInline
@frozen
struct Rule {
  @usableFromInline var delay: UInt64
  /// The longest wait of a value, at least `delay`; `nil` for none.
  @usableFromInline var span: UInt64?
  /// The longest wait as written in the policy.
  @usableFromInline var maxWait: UInt64?
  @usableFromInline var leading: Bool
  /// Whether the last change of a burst runs.
  @usableFromInline var trailing: Bool
  /// The shortest time between the starts of two runs; zero for none.
  @usableFromInline var interval: UInt64
  /// The list for `delay`; -1 when there are too many distinct delays.
  @usableFromInline var quietList: Int8 = -1
  /// The list for `span`; -1 when there is no span or there are too many.
  @usableFromInline var maxWaitList: Int8 = -1

  /// Whether values only wait for quiet, in a list.
  @inlinable var isPlain: Bool { quietList >= 0 && span == nil && !leading && interval == 0 }

  @inlinable
  init(_ policy: Policy) {
    delay = policy.delay.queueNanoseconds
    maxWait = policy.maxWait?.queueNanoseconds
    span = maxWait.map { [delay] in max($0, delay) }
    leading = policy.leading
    trailing = policy.trailing
    interval = policy.minInterval.queueNanoseconds
  }

  /// Makes this the rule for a change with its own delay.
  @inlinable
  mutating func overrideDelay(_ newDelay: Duration, in lists: borrowing DeadlineLists) {
    delay = newDelay.queueNanoseconds
    quietList = lists.number(for: delay, interval: interval)
    guard let maxWait else { return }
    let longest = max(maxWait, delay)
    span = longest
    maxWaitList = lists.number(for: longest, interval: 0)
  }

  /// When a value is due, from the end of its quiet period and the start of its wait.
  @inlinable
  func due(quietEnd: UInt64, waitStart: UInt64) -> UInt64 {
    guard let span else { return quietEnd }
    return min(quietEnd, waitStart.saturatingAdd(span))
  }
}

extension Duration {
  /// The duration in nanoseconds, rounded up so that nothing runs early; negative counts as zero.
  @inlinable
  var queueNanoseconds: UInt64 {
    let whole = wholeNanoseconds
    if whole < 0 { return 0 }
    let isExact = components.attoseconds % 1_000_000_000 == 0
    return UInt64(whole) + (isExact || whole == .max ? 0 : 1)
  }
}

extension UInt64 {
  /// The sum, saturated at the maximum.
  @inlinable
  func saturatingAdd(_ other: UInt64) -> UInt64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }
}

/// The rule of every distinct policy, by number; the first is the default.
@usableFromInline
@frozen
struct RuleTable: ~Copyable {
  @usableFromInline var rules = Buffer<Rule>(capacity: 1)
  @usableFromInline var numbers: [Policy: Int32] = [:]
  /// Whether any policy has an interval between runs.
  @usableFromInline var hasIntervals = false

  @inlinable init() {}

  @inlinable
  subscript(number: Int32) -> Rule {
    unsafeAddress { unsafe UnsafePointer(rules.address(of: Int(number))) }
  }

  /// The number of the rule of a policy, which is added if it is new.
  @usableFromInline
  @discardableResult
  mutating func add(_ policy: Policy, to lists: inout DeadlineLists) -> Int32 {
    if let known = numbers[policy] { return known }
    var rule = Rule(policy)
    rule.quietList = lists.add(rule.delay, interval: rule.interval)
    if let span = rule.span { rule.maxWaitList = lists.add(span, interval: 0) }
    if rule.interval > 0 { hasIntervals = true }
    let number = Int32(rules.count)
    rules.append(rule)
    numbers[policy] = number
    return number
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

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

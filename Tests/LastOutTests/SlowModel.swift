// Settle
// SPDX-License-Identifier: Apache-2.0

/// The rules of the queue in their simplest form: no lists, every key is checked every time.
struct SlowModel {
  struct Rule {
    var delay: UInt64
    var maxWait: UInt64?
    var leading: Bool
    var minInterval: UInt64 = 0
    var trailing = true
  }

  struct Key {
    var value: Int?
    var collapsed = 0
    var lastChange: UInt64 = 0
    var delay: UInt64 = 0
    var base: UInt64 = 0
    var due: UInt64 = 0
    var isOpen = false
    var isUrgent = false
    var isRunning = false
    /// When the last run under an interval started, and when that interval ends.
    var start: UInt64 = 0
    var intervalEnd: UInt64 = 0
  }

  var rules: [Rule]
  var keys: [Key]

  init(rules: [Rule]) {
    self.rules = rules
    keys = Array(repeating: Key(), count: rules.count)
  }

  mutating func enqueue(_ value: Int, for index: Int, at now: UInt64, delay: UInt64?) -> Int? {
    var key = keys[index]
    let rule = rules[index]
    // A burst ends `delay` after its last change; one without a delay lasts through its instant.
    let hasEnded = now > key.lastChange && now >= key.lastChange + key.delay
    let isFirst = !key.isOpen || hasEnded
    if isFirst {
      key.isOpen = true
      key.base = now
    }
    key.lastChange = now
    key.delay = delay ?? rule.delay
    let old = key.value
    if !rule.trailing && !isFirst && old == nil {
      keys[index] = key
      return value
    }
    if old != nil { key.collapsed += 1 }
    key.value = value
    let earliest =
      rule.minInterval == 0 ? 0 : min(key.intervalEnd, key.start + rule.minInterval)
    let leads = isFirst && rule.leading && !key.isUrgent
    if leads {
      key.isUrgent = true
      key.due = now
    }
    if key.isUrgent {
      // A due value stays due.
      if leads || key.due > now { key.due = earliest > now ? earliest : min(key.due, now) }
    } else {
      key.due = now + key.delay
      if let maxWait = rule.maxWait { key.due = min(key.due, key.base + max(maxWait, key.delay)) }
      key.due = max(key.due, earliest)
    }
    keys[index] = key
    return old
  }

  /// The values that may run now.
  func due(at now: UInt64) -> [Int] {
    keys.indices.filter { keys[$0].value != nil && !keys[$0].isRunning && keys[$0].due <= now }
  }

  mutating func take(_ index: Int, at now: UInt64) -> (value: Int?, collapsed: Int, due: UInt64) {
    let taken = (keys[index].value, keys[index].collapsed, min(keys[index].due, now))
    keys[index].value = nil
    keys[index].collapsed = 0
    keys[index].base = now
    keys[index].isUrgent = false
    keys[index].isRunning = true
    restartInterval(index, at: now)
    return taken
  }

  mutating func restartInterval(_ index: Int, at now: UInt64) {
    guard rules[index].minInterval > 0 else { return }
    keys[index].start = now
    keys[index].intervalEnd = now + rules[index].minInterval
  }

  mutating func finish(_ index: Int) {
    keys[index].isRunning = false
  }

  mutating func cancel(_ index: Int) -> Int? {
    let value = keys[index].value
    keys[index].value = nil
    keys[index].collapsed = 0
    keys[index].isOpen = false
    keys[index].isUrgent = false
    return value
  }

  mutating func markDue(_ index: Int, at now: UInt64) {
    keys[index].isUrgent = true
    keys[index].due = min(keys[index].due, now)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting

/// Plays one random schedule against the core and the model, and reports the first difference.
struct RandomWalk: ~Copyable {
  private var generator: SeededGenerator
  private var core: LastOutCore<Int>
  private var model: SlowModel
  private var now: UInt64 = 0
  private var value = 0
  private let delays: [UInt64]
  /// The first difference, in words.
  private(set) var difference: String?

  init(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    // Every other schedule has more distinct delays than there are lists.
    delays = seed % 2 == 0 ? [0, 1, 5, 10, 20, 50] : Array(0..<40)
    var rules: [SlowModel.Rule] = []
    core = LastOutCore(policy: Policy(delay: .nanoseconds(3)), capacity: 1)
    for key in 0..<Int.random(in: 1...6, using: &generator) {
      let rule = Self.rule(delays, &generator)
      rules.append(rule)
      core.setPolicy(Self.policy(rule), for: KeyIndex(Int32(key)))
    }
    model = SlowModel(rules: rules)
    self.generator = generator
  }

  mutating func play(steps: Int) {
    for step in 0..<steps where difference == nil {
      moveOn()
      drain()
      act()
      if pick(3) > 0 { drainReady() }
      compare()
      if let found = difference { difference = "step \(step) at \(now): \(found)" }
    }
  }

  // MARK: One step

  private mutating func moveOn() {
    switch pick(4) {
    case 0: break
    case 1: now += UInt64(pick(60))
    case 2: now += UInt64(pick(6))
    default: now = max(now, min(core.nextDeadline?.nanoseconds ?? now, now + 100))
    }
  }

  private mutating func act() {
    let index = pick(model.keys.count)
    let key = KeyIndex(Int32(index))
    switch pick(20) {
    case 0: cancel(index)
    case 1: cancelAll()
    case 2...3: flush(index)
    case 4...6: finishSome()
    case 8 where model.keys[index].value == nil:
      model.restartInterval(index, at: now)
      core.restartInterval(of: key, at: moment)
    case 7:
      model.rules[index] = Self.rule(delays, &generator)
      core.setPolicy(Self.policy(model.rules[index]), for: key)
    default:
      value += 1
      let delay = pick(8) == 0 ? UInt64(pick(60)) : nil
      let expected = model.enqueue(value, for: index, at: now, delay: delay)
      let replaced = core.enqueue(
        value,
        for: key,
        at: moment,
        delay: delay.map { .nanoseconds(Int64($0)) }
      )
      expect(replaced == expected, "replaced \(replaced as Any), not \(expected as Any)")
    }
  }

  private mutating func cancel(_ index: Int) {
    let wasRunning = model.keys[index].isRunning
    let collapsed = model.keys[index].collapsed
    let expected = model.cancel(index)
    switch core.cancel(KeyIndex(Int32(index))) {
    case .cancelled(let value, let count):
      expect(value == expected && count == collapsed, "cancelled \(value)")
    case .alreadyStarted: expect(expected == nil && wasRunning, "cancel: started")
    case .nothing: expect(expected == nil && !wasRunning, "cancel: nothing")
    }
  }

  private mutating func cancelAll() {
    let dropped = core.cancelAll().map(\.value).sorted()
    var expected: [Int] = []
    for index in model.keys.indices {
      if let value = model.cancel(index) { expected.append(value) }
    }
    expect(dropped == expected.sorted(), "cancelAll dropped \(dropped), not \(expected)")
  }

  private mutating func flush(_ index: Int) {
    switch core.flush(KeyIndex(Int32(index)), at: moment) {
    case .run(let run): take(run)
    case .markedDue:
      expect(model.keys[index].isRunning && model.keys[index].value != nil, "flush: marked")
      model.markDue(index, at: now)
    case .nothing: expect(model.keys[index].value == nil, "flush: nothing")
    }
  }

  private mutating func finishSome() {
    for index in model.keys.indices where model.keys[index].isRunning && pick(2) == 0 {
      model.finish(index)
      core.finish(KeyIndex(Int32(index)), at: moment)
    }
  }

  private mutating func drain() {
    while let run = core.nextRun(at: moment) {
      take(run)
      if pick(2) == 0 {
        model.finish(Int(run.key.rawValue))
        core.finish(run.key, at: moment)
      }
    }
    let late = model.due(at: now)
    expect(late.isEmpty, "late: \(late)")
    if let next = core.nextDeadline {
      expect(next.nanoseconds > now, "nextDeadline \(next.nanoseconds) spins")
    }
  }

  private mutating func drainReady() {
    while let run = core.nextReady(at: moment) { take(run) }
  }

  private mutating func take(_ run: LastOutCore<Int>.Run) {
    let index = Int(run.key.rawValue)
    expect(!model.keys[index].isRunning, "key \(index) overlaps")
    let expected = model.take(index, at: now)
    expect(
      run.value == expected.value && run.collapsed == expected.collapsed
        && run.due.nanoseconds == expected.due,
      "run \(run.value)/\(run.collapsed)/\(run.due.nanoseconds), not \(expected)"
    )
  }

  // MARK: Comparison

  private mutating func compare() {
    let pending = model.keys.indices.filter { model.keys[$0].value != nil }
    let count = core.pendingCount
    expect(count == pending.count, "pendingCount \(count)")
    expect(core.pendingKeys().map { Int($0.rawValue) }.sorted() == pending, "pendingKeys")
    if pending.isEmpty { expect(core.nextDeadline == nil, "a deadline without anything pending") }
    for index in model.keys.indices {
      let key = KeyIndex(Int32(index))
      let expected = model.keys[index]
      expect(core.isRunning(key) == expected.isRunning, "isRunning \(index)")
      expect(core.isPending(key) == (expected.value != nil), "isPending \(index)")
      let found = core.pending(key)
      expect(found?.value == expected.value, "pending \(index)")
      guard let found else { continue }
      expect(
        found.due.nanoseconds == expected.due,
        "due \(found.due.nanoseconds) of \(index), not \(expected.due)"
      )
      expect(found.collapsed == expected.collapsed, "collapsed of \(index)")
      expect(!found.isMarkedDue || expected.isRunning, "marked \(index)")
      guard !expected.isRunning else { continue }
      expect(
        core.nextDeadline.map { [now] in $0.nanoseconds <= max(now, expected.due) } ?? false,
        "nextDeadline is later than key \(index)"
      )
    }
  }

  private mutating func expect(_ holds: Bool, _ what: @autoclosure () -> String) {
    if !holds && difference == nil { difference = what() }
  }

  private var moment: Moment { Moment(nanoseconds: now) }

  private mutating func pick(_ count: Int) -> Int {
    Int.random(in: 0..<count, using: &generator)
  }

  static func rule(
    _ delays: [UInt64],
    _ generator: inout SeededGenerator
  ) -> SlowModel.Rule {
    let isLeadingOnly = Int.random(in: 0..<6, using: &generator) == 0
    return SlowModel.Rule(
      delay: delays.randomElement(using: &generator) ?? 0,
      maxWait: !isLeadingOnly && Bool.random(using: &generator)
        ? delays.randomElement(using: &generator) : nil,
      leading: isLeadingOnly || Int.random(in: 0..<3, using: &generator) == 0,
      minInterval: Bool.random(using: &generator)
        ? UInt64.random(in: 1...90, using: &generator) : 0,
      trailing: !isLeadingOnly
    )
  }

  static func policy(_ rule: SlowModel.Rule) -> Policy {
    let delay = Duration.nanoseconds(Int64(rule.delay))
    let interval = Duration.nanoseconds(Int64(rule.minInterval))
    guard rule.trailing else { return .leadingOnly(delay: delay, minInterval: interval) }
    return Policy(
      delay: delay,
      maxWait: rule.maxWait.map { .nanoseconds(Int64($0)) },
      leading: rule.leading,
      minInterval: interval
    )
  }
}

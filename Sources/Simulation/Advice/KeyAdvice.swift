// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
package import LastOut
import Values

/// What each policy makes of one key of a recording, and which one to choose.
package struct KeyAdvice: Sendable {
  /// What is asked of the policy that is suggested.
  package struct Wish: Sendable {
    /// The final value of a gesture is sent within this time of its last change.
    package var final: Duration = .milliseconds(500)
    /// No change waits longer than this until its value, or a newer one, is sent.
    package var wait: Duration = .seconds(2)

    package init() {}
  }

  package struct Row: Sendable {
    package let policy: Policy
    package let outcome: TrialOutcome
    /// Whether another policy is as good in everything and better in something.
    package fileprivate(set) var isDominated = false
    package fileprivate(set) var isSuggested = false
    /// Whether it is the policy in force.
    package let isInForce: Bool
  }

  package let key: Recording.Key
  package let changeCount: Int
  package let gestureCount: Int
  package let wish: Wish
  /// Whether commands of the key pass a lane with a limit.
  package let hasLane: Bool
  /// The policies, those with the most commands first; of those that lead to the same commands at
  /// the same moments, the simplest.
  package private(set) var rows: [Row] = []
  let changes: [Moment]

  /// - Parameters:
  ///   - position: The key's position in the recording.
  ///   - recording: What to play.
  ///   - gestures: The gestures of the same recording.
  ///   - lanes: The lanes that pace commands.
  ///   - wish: What decides which policy is suggested.
  package init(
    on position: Int,
    of recording: Recording,
    _ gestures: Gestures,
    _ lanes: TrialLanes,
    _ wish: Wish
  ) {
    key = recording.keys[position]
    self.wish = wish
    hasLane = lanes.lane(of: key) != nil
    gestureCount = gestures.of(position).count
    changeCount = recording.changeCount(of: position)
    let busiest = gestures.busiest(of: position)
    changes =
      busiest.map { span in
        (span.first...span.last).map { recording.entries[$0] }
          .filter { $0.key == position && $0.isChange }.map(\.at)
      } ?? []
    var seen: Set<[TrialOutcome.Sent]> = []
    let own = key.property == nil ? nil : key.policy
    let others = PolicyCandidates.all.filter { $0 != own }
    for policy in [own].compactMap({ $0 }) + others {
      let outcome = PolicyTrial(policy, for: position, in: recording, gestures, lanes).play()
      guard seen.insert(outcome.commands).inserted else { continue }
      rows.append(Row(policy: policy, outcome: outcome, isInForce: policy == own))
    }
    rank()
  }

  /// Whether the policies differ in how many commands they send.
  package var isOfNoConsequence: Bool { Set(rows.map(\.outcome.commands.count)).count < 2 }

  /// The row to choose: the fewest commands among those that fulfil the wish; if none does, the one
  /// whose final value is soonest.
  package var suggested: Row? { rows.first { $0.isSuggested } }

  private mutating func rank() {
    for row in rows.indices {
      rows[row].isDominated = rows.contains { $0.outcome.dominates(rows[row].outcome) }
    }
    // The order of the candidates decides between equals.
    rows = rows.enumerated().sorted {
      (-$0.element.outcome.commands.count, $0.offset)
        < (-$1.element.outcome.commands.count, $1.offset)
    }.map(\.element)
    let good = rows.indices.filter { !rows[$0].isDominated }
    let fulfilling = good.filter {
      rows[$0].outcome.worstFinal <= wish.final && rows[$0].outcome.worstWait <= wish.wait
    }
    let best = (fulfilling.isEmpty ? good : fulfilling).min { left, right in
      let (a, b) = (rows[left].outcome, rows[right].outcome)
      if fulfilling.isEmpty, a.worstFinal != b.worstFinal { return a.worstFinal < b.worstFinal }
      return (a.commands.count, a.worstFinal, a.worstWait)
        < (b.commands.count, b.worstFinal, b.worstWait)
    }
    if let best { rows[best].isSuggested = true }
  }
}

extension KeyAdvice {
  /// One object for each policy, in the order of ``rows``.
  package var json: [JSONValue] { rows.map(json) }

  private func json(_ row: Row) -> JSONValue {
    let (policy, outcome) = (row.policy, row.outcome)
    var members: [JSONValue.Member] = [
      .init("key", .string(key.name)),
      .init(
        "policy",
        .object([
          "delay_ms": Self.milliseconds(policy.delay),
          "max_wait_ms": policy.maxWait.map(Self.milliseconds) ?? .null,
          "leading": .boolean(policy.leading),
          "min_interval_ms": Self.milliseconds(policy.minInterval),
        ])
      ),
      .init("changes", .integer(Int64(changeCount))),
      .init("gestures", .integer(Int64(gestureCount))),
      .init("commands", .integer(Int64(outcome.commands.count))),
      .init("final_p50_ms", Self.milliseconds(outcome.typicalFinal)),
      .init("final_worst_ms", Self.milliseconds(outcome.worstFinal)),
      .init("wait_worst_ms", Self.milliseconds(outcome.worstWait)),
    ]
    if hasLane { members.append(.init("queued", .integer(Int64(outcome.mostQueued)))) }
    members += [
      .init("dominated", .boolean(row.isDominated)),
      .init("suggested", .boolean(row.isSuggested)),
      .init("in_force", .boolean(row.isInForce)),
      .init("line", .string("policy: " + PolicyText.yaml(policy, over: inherited))),
    ]
    return .object(members)
  }

  /// The policy that a shorter line would inherit from, as far as it is known.
  var inherited: Policy? { key.property?.policy }

  private static func milliseconds(_ duration: Duration) -> JSONValue {
    JSONValue(shortest: Double(duration.wholeNanoseconds / 1000) / 1000)
  }
}

/// The policies that are tried, the simplest first.
enum PolicyCandidates {
  static let all: [Policy] = plain + bounded + leading + live

  private static let delays = [100, 200, 300, 500, 800]

  /// The quiet period alone.
  private static let plain = delays.map { Policy(delay: .milliseconds($0)) }

  /// The quiet period with a longest wait.
  private static let bounded = delays.flatMap { delay in
    [1, 2].map { Policy(delay: .milliseconds(delay), maxWait: .seconds($0)) }
  }

  /// The first change at once.
  private static let leading = [200, 300, 500].flatMap { delay in
    [nil, .seconds(1)].map {
      Policy(delay: .milliseconds(delay), maxWait: $0, leading: true)
    }
  }

  /// The first change at once, then one value per interval.
  private static let live = [100, 200, 500, 1000].map { interval in
    let interval = Duration.milliseconds(interval)
    return Policy(delay: interval, maxWait: interval, leading: true, minInterval: interval)
  }
}

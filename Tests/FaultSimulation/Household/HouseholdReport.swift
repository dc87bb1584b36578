// Settle
// SPDX-License-Identifier: Apache-2.0

/// The result of the life of one seed in a household; a failed one is replayed to report its last
/// events.
package struct HouseholdReport: Sendable {
  /// The seed, the violated rule and the events before it; `nil` if no rule was violated.
  package let breach: String?
  package let steps: Int
  package let seen: HouseholdCoverage

  /// Runs `seed`, which ends with the first violation of one of `clauses`; `listener` receives
  /// every event, and `mistake` is what is wrong with the simulated world.
  package init(
    seed: UInt64,
    steps: Int,
    clauses: Clauses = .all,
    mistake: HouseholdLife.Mistake? = nil,
    listener: ((String) -> Void)? = nil
  ) {
    let life = HouseholdLife(seed: seed, clauses: clauses, mistake: mistake, listener: listener)
    life.live(steps: steps)
    self.steps = life.steps
    seen = life.seen
    guard let broken = life.breach else {
      breach = nil
      return
    }
    let again = HouseholdLife(seed: seed, clauses: clauses, mistake: mistake, isTraced: true)
    again.live(steps: steps)
    let isSame = again.breach == broken && again.steps == life.steps
    let replay = isSame ? "" : "\nThe replay differs: \(again.breach ?? "no rule violated")"
    breach = """
      \(again.trace.suffix(80).joined(separator: "\n"))
      Seed \(seed), step \(life.steps): \(broken)\(replay)
      Replay it with: make soak HOUSEHOLD=1 SEED=\(seed)
      """
  }
}

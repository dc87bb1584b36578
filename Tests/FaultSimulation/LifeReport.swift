// Settle
// SPDX-License-Identifier: Apache-2.0

/// The result of one seed; a failed run is replayed to report its last events.
///
/// Two of three seeds have a journal. A seed has a second life in a household, see
/// ``HouseholdLife``.
package struct LifeReport: Sendable {
  /// The seed, the violated rule and the events before it; `nil` if no rule was violated.
  package let breach: String?
  package let steps: Int
  package let seen: LifeCoverage

  /// Runs `seed`: `steps` with faults, then without; `listener` receives every event.
  package init(seed: UInt64, steps: Int, listener: ((String) -> Void)? = nil) {
    let life = Self.life(of: seed, isTraced: false, listener)
    life.live(steps: steps)
    guard let broken = life.breach else {
      let household = HouseholdReport(seed: seed, steps: steps, listener: listener)
      self.steps = life.steps + household.steps
      seen = LifeCoverage(life.seen, household.seen)
      breach = household.breach
      return
    }
    self.steps = life.steps
    seen = LifeCoverage(life.seen, HouseholdCoverage())
    let again = Self.life(of: seed, isTraced: true)
    again.live(steps: steps)
    let isSame = again.breach == broken && again.steps == life.steps
    let replay = isSame ? "" : "\nThe replay differs: \(again.breach ?? "no invariant violated")"
    breach = """
      \(again.trace.suffix(60).joined(separator: "\n"))
      Seed \(seed), step \(life.steps): \(broken)\(replay)
      Replay it with: make soak SEED=\(seed)
      """
  }

  private static func life(
    of seed: UInt64,
    isTraced: Bool,
    _ listener: ((String) -> Void)? = nil
  ) -> SimulatedLife {
    SimulatedLife(
      seed: seed,
      isJournalled: !seed.isMultiple(of: 3),
      isTraced: isTraced,
      listener: listener
    )
  }
}

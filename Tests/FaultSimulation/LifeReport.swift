// Settle
// SPDX-License-Identifier: Apache-2.0

/// What one seed's life came to; a broken one is lived again to tell its last happenings.
///
/// Two of three seeds live with a journal.
package struct LifeReport: Sendable {
  /// The seed, the broken rule and what led there; `nil` when no rule was broken.
  package let breach: String?
  package let steps: Int
  package let seen: Coverage

  /// Lives the life of `seed`: `steps` of trouble, then calm; `listener` gets every happening.
  package init(seed: UInt64, steps: Int, listener: ((String) -> Void)? = nil) {
    var life = Self.life(of: seed, isTraced: false, listener)
    life.live(steps: steps)
    self.steps = life.steps
    seen = life.seen
    guard let broken = life.breach else {
      breach = nil
      return
    }
    var again = Self.life(of: seed, isTraced: true)
    again.live(steps: steps)
    let isSame = again.breach == broken && again.steps == life.steps
    let replay = isSame ? "" : "\nThe replay went another way: \(again.breach ?? "no rule broken")"
    breach = """
      \(again.trace.suffix(60).joined(separator: "\n"))
      Seed \(seed), step \(life.steps): \(broken)\(replay)
      Live it again with: make soak SEED=\(seed)
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

// Settle
// SPDX-License-Identifier: Apache-2.0

/// The result of one seed; a failed run is replayed to report its last events.
package struct ClusterReport: Sendable {
  /// The seed, the violated rule and the events before it; `nil` if no rule was violated.
  package let breach: String?
  package let steps: Int
  package let seen: ClusterCoverage

  /// Runs `seed`: `steps` with faults, then without; `listener` receives every event.
  package init(seed: UInt64, steps: Int, listener: ((String) -> Void)? = nil) {
    let life = ClusterLife(seed: seed, listener: listener)
    life.live(steps: steps)
    self.steps = life.steps
    seen = life.seen
    guard let broken = life.breach else {
      breach = nil
      return
    }
    var lines: [String] = []
    let again = ClusterLife(seed: seed) { lines.append($0) }
    again.live(steps: steps)
    let isSame = again.breach == broken && again.steps == life.steps
    let replay = isSame ? "" : "\nThe replay differs: \(again.breach ?? "no rule violated")"
    breach = """
      \(lines.suffix(80).joined(separator: "\n"))
      Seed \(seed), step \(life.steps): \(broken)\(replay)
      Replay it with: make soak CLUSTER=1 SEED=\(seed)
      """
  }
}

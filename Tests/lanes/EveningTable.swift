// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import MeshSimulation

/// Evenings in a house, with and without Settle, as a table in Markdown.
enum EveningTable {
  private static let ways: [(name: String, way: House.Way)] = [
    ("every change at once", .direct), ("Settle, no lane", .settle(nil)),
    ("Settle, `window: auto`", .settle(LaneLimits(window: .auto))),
  ]

  /// One evening in each mesh, in each way.
  static func show(seed: UInt64) {
    header("changes in")
    let evening = Evening(seed: seed)
    for mesh in MeshParameters.all {
      for (name, way) in ways {
        let outcome = House(evening, mesh, way, seed: seed).play()
        row(mesh, name, "\(outcome.changes)", outcome)
      }
    }
  }

  /// The sums over several evenings, the longest times, and the seeds of the evenings in which
  /// `window: auto` lost a value; also for adapters with which a value may overtake another.
  static func show(seeds: Range<UInt64>) {
    header("evenings")
    let evenings = seeds.map { (seed: $0, evening: Evening(seed: $0)) }
    for mesh in MeshParameters.all + MeshParameters.all.map(\.withOvertaking) {
      for (name, way) in ways {
        var sum = House.Outcome()
        var losing: [UInt64] = []
        for (seed, evening) in evenings {
          let outcome = House(evening, mesh, way, seed: seed).play()
          sum.add(outcome)
          if case .settle(.some) = way, outcome.lost > 0 { losing.append(seed) }
        }
        row(mesh, name, "\(seeds.count)", sum)
        if !losing.isEmpty { print("lost with seeds", losing) }
      }
    }
  }

  private static func header(_ third: String) {
    MarkdownTable.row([
      "mesh", "", third, "commands out", "dropped", "lost", "settled in, p50", "worst",
      "worst valve",
    ])
    MarkdownTable.row(Array(repeating: "---", count: 9))
  }

  private static func row(
    _ mesh: MeshParameters,
    _ name: String,
    _ third: String,
    _ outcome: House.Outcome
  ) {
    MarkdownTable.row([
      mesh.name, name, third, "\(outcome.messages)", "\(outcome.dropped)",
      "\(outcome.lost) of \(outcome.finals)", MarkdownTable.seconds(outcome.typical),
      MarkdownTable.seconds(outcome.worst), MarkdownTable.seconds(outcome.worstValve),
    ])
  }
}

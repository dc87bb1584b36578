// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import MeshSimulation

/// How near `window: auto` comes to the best fixed limits in random houses with six buses, as a
/// table in Markdown.
enum BusTable {
  /// Scenes of each house.
  private static let scenes = 4

  private struct House {
    let number: UInt64
    let ratio: Double
    let auto: Contest.Result
  }

  /// Plays `houses` houses with each bus.
  static func show(houses: Int) {
    MarkdownTable.row([
      "bus", "houses", "bound of best", "`auto` of best, median", "95 %", "worst", "within 1.15",
      "dropped", "lost", "slowest house",
    ])
    MarkdownTable.row(Array(repeating: "---", count: 10))
    for bus in MeshParameters.buses { show(bus, houses) }
  }

  private static func show(_ bus: MeshParameters, _ houses: Int) {
    var played: [House] = []
    var bounds: [Double] = []
    var hopeless = 0
    for number in 0..<UInt64(houses) {
      let (mesh, lamps) = bus.house(seed: number)
      let contest = Contest(mesh, lamps: lamps, scenes: scenes)
      guard let limits = contest.bestSchedule() else {
        hopeless += 1
        continue
      }
      let best = contest.play(limits)
      let auto = contest.play(LaneLimits(window: .auto))
      bounds.append(mesh.bound(lamps: lamps) / best.time)
      played.append(House(number: number, ratio: auto.time / best.time, auto: auto))
    }
    guard !played.isEmpty else {
      return MarkdownTable.row([bus.name, "\(houses)", "every schedule loses something"])
    }
    played.sort { $0.ratio < $1.ratio }
    bounds.sort()
    let near = played.count { $0.ratio <= 1.15 }
    let last = played[played.count - 1]
    MarkdownTable.row([
      bus.name, hopeless == 0 ? "\(houses)" : "\(houses), \(hopeless) without a good schedule",
      text(bounds[bounds.count / 2]), text(played[played.count / 2].ratio),
      text(played[played.count * 95 / 100].ratio), text(last.ratio),
      "\(near * 100 / played.count) %", "\(played.reduce(0) { $0 + $1.auto.dropped })",
      "\(played.reduce(0) { $0 + $1.auto.lost })", "\(last.number)",
    ])
  }

  private static func text(_ ratio: Double) -> String { "\((ratio * 100).rounded() / 100)" }
}

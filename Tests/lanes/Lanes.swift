// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import MeshSimulation

/// Compares lanes in simulated meshes, and prints a table in Markdown.
///
/// `lanes` plays the three meshes, `lanes vary` also each of them with its assumptions halved and
/// doubled.
@main struct Lanes {
  private static let scenes = 40

  static func main() {
    let varies = CommandLine.arguments.dropFirst().contains("vary")
    row([
      "mesh", "lamps", "no lane", "best rate", "time", "`auto`", "ratio", "second scene", "ratio",
    ])
    row(Array(repeating: "---", count: 9))
    for mesh in MeshParameters.all {
      for variation in [mesh] + (varies ? mesh.variations : []) {
        for lamps in [10, 30, 80] { compare(Contest(variation, lamps: lamps, scenes: scenes)) }
      }
    }
  }

  private static func compare(_ contest: Contest) {
    let none = contest.play(nil)
    guard let rate = contest.bestRate() else {
      return row([contest.mesh.name, "\(contest.lamps)", text(none), "no rate loses nothing"])
    }
    let best = contest.play(LaneLimits(rate: rate, burst: 1))
    let auto = contest.play(LaneLimits(window: .auto))
    let second = contest.playSecond(LaneLimits(window: .auto))
    row([
      contest.mesh.name, "\(contest.lamps)", text(none), "\(Int(rate))/s", text(best), text(auto),
      ratio(auto, best), text(second), ratio(second, best),
    ])
  }

  private static func text(_ result: Contest.Result) -> String {
    guard result.dropped + result.lost > 0 else { return seconds(result.time) }
    return "\(seconds(result.time)), \(result.dropped) dropped, \(result.lost) lost"
  }

  private static func ratio(_ one: Contest.Result, _ other: Contest.Result) -> String {
    "\((one.time / other.time * 100).rounded() / 100)"
  }

  private static func seconds(_ milliseconds: Double) -> String {
    "\((milliseconds / 10).rounded() / 100) s"
  }

  private static func row(_ cells: [String]) { print("| \(cells.joined(separator: " | ")) |") }
}

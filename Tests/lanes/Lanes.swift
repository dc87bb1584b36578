// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import MeshSimulation

/// Compares lanes in simulated meshes, and prints tables in Markdown.
///
/// `lanes` plays the three meshes, `lanes vary` also each of them with its assumptions halved and
/// doubled. `lanes groups` plays them as changes of groups, `lanes silent` with lamps that never
/// confirm, and `lanes buses 1000` so many random houses with each of six buses. `lanes plot`
/// writes the pictures of docs/lanes.md, and `lanes evening` plays an evening in a house.
@main struct Lanes {
  private static let scenes = 40

  static func main() {
    let arguments = CommandLine.arguments.dropFirst()
    switch arguments.first {
    case nil: compareAll(varies: false)
    case "vary": compareAll(varies: true)
    case "groups": compareGroups()
    case "silent": compareSilent()
    case "buses": BusTable.show(houses: arguments.dropFirst().first.flatMap { Int($0) } ?? 1000)
    case "plot": LanePictures.write(scenes: scenes)
    case "evening": playEvenings(arguments.dropFirst().compactMap { UInt64($0) })
    case let word?:
      print("lanes: unknown word \(word); vary, groups, silent, buses, plot and evening are known")
    }
  }

  /// `numbers` are the seed of the first evening, and how many there are.
  private static func playEvenings(_ numbers: [UInt64]) {
    let seed = numbers.first ?? House.defaultSeed
    if numbers.count > 1 {
      EveningTable.show(seeds: seed..<(seed + numbers[1]))
    } else {
      EveningTable.show(seed: seed)
    }
  }

  private static func compareAll(varies: Bool) {
    MarkdownTable.row([
      "mesh", "lamps", "no lane", "best rate", "time", "`auto`", "ratio", "second scene", "ratio",
    ])
    MarkdownTable.row(Array(repeating: "---", count: 9))
    for mesh in MeshParameters.all {
      for variation in [mesh] + (varies ? mesh.variations : []) {
        for lamps in [10, 30, 80] { compare(Contest(variation, lamps: lamps, scenes: scenes)) }
      }
    }
  }

  /// One message for all lamps against one for each.
  private static func compareGroups() {
    MarkdownTable.row(["mesh", "lamps", "one by one", "one message", "ratio", "sent again"])
    MarkdownTable.row(Array(repeating: "---", count: 6))
    for mesh in MeshParameters.all {
      for lamps in [2, 4, 6, 10, 30, 60] {
        let contest = Contest(mesh, lamps: lamps, scenes: scenes)
        let single = contest.play(LaneLimits(window: .auto))
        let group = contest.playGroup(LaneLimits(window: .auto))
        MarkdownTable.row([
          mesh.name, "\(lamps)", text(single), text(group), ratio(group, single),
          "\(group.repeated) of \(lamps * scenes)",
        ])
      }
    }
  }

  /// Lamps that work among lamps that never confirm: the time until the last that works has its
  /// value.
  private static func compareSilent() {
    MarkdownTable.row([
      "mesh", "never confirm", "best rate", "`auto`", "ratio", "second scene", "ratio",
    ])
    MarkdownTable.row(Array(repeating: "---", count: 7))
    for mesh in MeshParameters.all {
      let contest = Contest(mesh, lamps: 30, scenes: scenes)
      guard let rate = contest.bestRate() else { continue }
      for silent in [2, 15, 25] {
        let best = contest.arrivals(LaneLimits(rate: rate, burst: 1), silent: silent)
        let auto = contest.arrivals(LaneLimits(window: .auto), silent: silent)
        MarkdownTable.row([
          mesh.name, "\(silent) of 30", MarkdownTable.seconds(best.first),
          MarkdownTable.seconds(auto.first), ratio(auto.first, best.first),
          MarkdownTable.seconds(auto.second), ratio(auto.second, best.second),
        ])
      }
    }
  }

  private static func compare(_ contest: Contest) {
    let none = contest.play(nil)
    guard let rate = contest.bestRate() else {
      return MarkdownTable.row(
        [contest.mesh.name, "\(contest.lamps)", text(none), "no rate loses nothing"]
      )
    }
    let best = contest.play(LaneLimits(rate: rate, burst: 1))
    let auto = contest.play(LaneLimits(window: .auto))
    let second = contest.playSecond(LaneLimits(window: .auto))
    MarkdownTable.row([
      contest.mesh.name, "\(contest.lamps)", text(none), "\(Int(rate))/s", text(best), text(auto),
      ratio(auto, best), text(second), ratio(second, best),
    ])
  }

  private static func text(_ result: Contest.Result) -> String {
    guard result.dropped + result.lost > 0 else { return MarkdownTable.seconds(result.time) }
    return "\(MarkdownTable.seconds(result.time)), \(result.dropped) dropped, \(result.lost) lost"
  }

  private static func ratio(_ one: Contest.Result, _ other: Contest.Result) -> String {
    ratio(one.time, other.time)
  }

  private static func ratio(_ one: Double, _ other: Double) -> String {
    "\((one / other * 100).rounded() / 100)"
  }
}

/// Rows of a table in Markdown.
enum MarkdownTable {
  static func row(_ cells: [String]) { print("| \(cells.joined(separator: " | ")) |") }

  static func seconds(_ milliseconds: Double) -> String {
    "\((milliseconds / 10).rounded() / 100) s"
  }
}

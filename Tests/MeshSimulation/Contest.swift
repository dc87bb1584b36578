// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices

/// Ways to pace the commands of one scene in one mesh, compared.
package struct Contest: Sendable {
  /// The mean and the sums of some scenes.
  package struct Result: Sendable {
    /// Milliseconds until everything has ended, on average.
    package var time = 0.0
    package var worst = 0.0
    package var dropped = 0
    package var repeated = 0
    package var lost = 0

    init(_ outcomes: [LampScene.Outcome]) {
      for outcome in outcomes {
        time += outcome.time / Double(outcomes.count)
        worst = max(worst, outcome.time)
        dropped += outcome.dropped
        repeated += outcome.repeated
        lost += outcome.lost
      }
    }
  }

  package let mesh: MeshParameters
  package let lamps: Int
  /// How many scenes are played each way.
  package let scenes: Int

  package init(_ mesh: MeshParameters, lamps: Int, scenes: Int) {
    self.mesh = mesh
    self.lamps = lamps
    self.scenes = scenes
  }

  /// The rates that are tried, the highest first.
  package static let rates = Array(
    sequence(first: 250.0) { $0 / 1.08 >= 1 ? $0 / 1.08 : nil }
  )

  /// Plays the first scene of so many houses; other `seeds` have other luck.
  package func play(_ limits: LaneLimits?, seeds: UInt64 = 1_000) -> Result {
    Result(
      (0..<UInt64(scenes)).map { number in
        var scene = LampScene(mesh, lamps: lamps, limits: limits, seed: seeds + number)
        return scene.play()
      }
    )
  }

  /// Plays the first scene as a change of a group, which one message reaches.
  package func playGroup(_ limits: LaneLimits?) -> Result {
    Result(
      (0..<UInt64(scenes)).map { number in
        let seed = 1_000 + number
        var scene = LampScene(mesh, lamps: lamps, limits: limits, seed: seed, isGrouped: true)
        return scene.play()
      }
    )
  }

  /// Plays the second scene, whose lanes have learned from the first.
  package func playSecond(_ limits: LaneLimits?) -> Result {
    Result(
      (0..<UInt64(scenes)).map { number in
        var scene = LampScene(mesh, lamps: lamps, limits: limits, seed: 2_000 + number)
        _ = scene.play()
        return scene.play()
      }
    )
  }

  /// Milliseconds, on average, until the last lamp that works has its value, in the first scene and in
  /// the second; the first `silent` lamps never confirm.
  package func arrivals(
    _ limits: LaneLimits,
    silent: Int
  ) -> (first: Double, second: Double) {
    var sums = (first: 0.0, second: 0.0)
    for number in 0..<UInt64(scenes) {
      let seed = 1_000 + number
      var scene = LampScene(mesh, lamps: lamps, limits: limits, seed: seed, silent: Set(0..<silent))
      sums.first += scene.play().lastArrival
      sums.second += scene.play().lastArrival
    }
    return (sums.first / Double(scenes), sums.second / Double(scenes))
  }

  /// The rate that settles soonest among those that drop and lose nothing, by trying all from 1 to
  /// 250 a second in steps of 8 %.
  ///
  /// It is chosen by other scenes than those that ``play(_:seeds:)`` plays by default: it must not
  /// know the luck of the ones it is judged by.
  package func bestRate() -> Double? {
    best(of: Self.rates.map { LaneLimits(rate: $0, burst: 1) })?.rate?.perSecond
  }

  /// Fixed limits that a person might choose who knows the mesh: rates in steps of 17 %, and
  /// windows.
  private static let schedules: [LaneLimits] =
    rates.enumerated().filter { $0.offset % 2 == 0 }.map {
      LaneLimits(rate: $0.element, burst: 1)
    }
    + [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32].map {
      LaneLimits(window: .init(start: $0, min: $0, max: $0))
    }

  /// The fixed limits that settle soonest among those that drop and lose nothing; `nil` if all do.
  ///
  /// They are chosen by other scenes than those that ``play(_:seeds:)`` plays by default.
  package func bestSchedule() -> LaneLimits? { best(of: Self.schedules) }

  /// The limits that settle soonest in scenes of other seeds, among those that drop and lose
  /// nothing.
  private func best(of schedules: [LaneLimits]) -> LaneLimits? {
    var best: (limits: LaneLimits, time: Double)?
    for limits in schedules {
      // Slower rates only take longer.
      if let best, let rate = limits.rate?.perSecond, Double(lamps) / rate * 1000 > 2 * best.time {
        continue
      }
      let result = play(limits, seeds: 1)
      if result.lost == 0, result.dropped == 0, best.map({ result.time < $0.time }) ?? true {
        best = (limits, result.time)
      }
    }
    return best?.limits
  }
}

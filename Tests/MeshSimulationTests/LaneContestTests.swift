// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import MeshSimulation
import Testing

/// What a lane with a window does in simulated meshes; `make lanes` prints the whole comparison.
struct LaneContestTests {
  @Test(arguments: ["fast", "slow", "lossy"])
  func `auto settles a scene about as soon as the best rate, and loses nothing`(
    name: String
  ) throws {
    let mesh = try #require(MeshParameters.all.first { $0.name == name })
    for (lamps, scenes) in [(10, 40), (30, 10)] {
      let contest = Contest(mesh, lamps: lamps, scenes: scenes)
      let rate = try #require(contest.bestRate())
      let best = contest.play(LaneLimits(rate: rate, burst: 1))
      for auto in [contest.play(Self.auto), contest.playSecond(Self.auto)] {
        #expect(auto.time <= best.time * 1.25, "\(lamps) lamps at \(rate) a second")
        #expect(auto.lost == 0)
        #expect(auto.dropped == 0)
      }
    }
  }

  @Test(arguments: MeshParameters.buses)
  func `in random houses with each bus auto is near the best fixed limits, and loses nothing`(
    bus: MeshParameters
  ) throws {
    var times = (best: 0.0, auto: 0.0)
    for seed in UInt64(0)..<4 {
      let (mesh, lamps) = bus.house(seed: seed)
      let contest = Contest(mesh, lamps: lamps, scenes: 1)
      let limits = try #require(contest.bestSchedule())
      let best = contest.play(limits)
      let auto = contest.play(Self.auto)
      #expect(auto.lost == 0)
      times.best += best.time
      times.auto += auto.time
    }
    #expect(times.auto <= 1.15 * times.best, "\(times)")
  }

  @Test func `without a lane the mesh is flooded`() {
    let none = Contest(.slow, lamps: 80, scenes: 3).play(nil)
    #expect(none.dropped > 3 * 80)
    #expect(none.lost > 0)
    let auto = Contest(.slow, lamps: 80, scenes: 3).play(Self.auto)
    #expect(auto.dropped == 0)
    #expect(auto.lost == 0)
  }

  @Test func `sixty lamps at one instant need a lane`() {
    var flooded = LampScene(.slow, lamps: 60, limits: nil, seed: 1_000)
    let none = flooded.play()
    #expect(none.arrived < 60)
    #expect(none.dropped > 60)
    var paced = LampScene(.slow, lamps: 60, limits: Self.auto, seed: 1_000)
    let auto = paced.play()
    #expect(auto.arrived == 60)
    #expect(auto.dropped == 0)
  }

  @Test(arguments: MeshParameters.all.flatMap(\.variations))
  func `auto loses nothing where an assumption is halved or doubled`(mesh: MeshParameters) {
    let auto = Contest(mesh, lamps: 30, scenes: 3).play(Self.auto)
    #expect(auto.lost == 0)
    #expect(auto.dropped == 0)
  }

  @Test(arguments: ["fast", "slow", "lossy"])
  func `the window finds its size and stays there`(name: String) throws {
    let mesh = try #require(MeshParameters.all.first { $0.name == name })
    var spreads: [Int] = []
    for seed in UInt64(1_000)..<1_020 {
      var scene = LampScene(mesh, lamps: 80, limits: Self.auto, seed: seed)
      scene.recordsWindow = true
      let outcome = scene.play()
      let sizes = scene.windows.filter { $0.at > outcome.time / 3 }.map(\.size)
      let (least, most) = (try #require(sizes.min()), try #require(sizes.max()))
      spreads.append(most - least)
      #expect(scene.windows.contains { $0.inFlight == $0.size })
    }
    // One house in a hundred has more: its luck with frames changes halfway.
    #expect(spreads.count { $0 > 4 } <= 1, "\(spreads)")
    #expect(spreads.allSatisfy { $0 <= 5 }, "\(spreads)")
  }

  @Test func `a stop passes a full window at once`() {
    var scene = LampScene(.slow, lamps: 30, limits: Self.auto, seed: 1)
    #expect(scene.play(stopsAfter: 200).urgentDelay == 0)
  }

  @Test func `dead lamps delay the others little`() {
    var whole = LampScene(.slow, lamps: 30, limits: Self.auto, seed: 1)
    var broken = LampScene(.slow, lamps: 30, limits: Self.auto, seed: 1, silent: [3, 17])
    for _ in 0..<3 {
      let all = whole.play()
      let rest = broken.play()
      #expect(all.arrived == 30)
      #expect(rest.arrived == 28)
      #expect(rest.lost == 0)
      #expect(rest.lastArrival <= all.lastArrival * 1.5 + 1000)
    }
  }

  /// What they do is not known in the first scene, and is in the second.
  @Test(arguments: ["fast", "slow", "lossy"], [15, 25])
  func `lamps that never confirm do not close the window for the others`(
    name: String,
    silent: Int
  ) throws {
    let mesh = try #require(MeshParameters.all.first { $0.name == name })
    let contest = Contest(mesh, lamps: 30, scenes: 10)
    let rate = try #require(contest.bestRate())
    let best = contest.arrivals(LaneLimits(rate: rate, burst: 1), silent: silent)
    let auto = contest.arrivals(Self.auto, silent: silent)
    #expect(auto.first <= best.first + 5000)
    #expect(auto.second <= best.second * 1.35)
  }

  private static let auto = LaneLimits(window: .auto)
}

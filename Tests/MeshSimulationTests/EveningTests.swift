// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import MeshSimulation
import Testing

/// An evening in a house of sixty devices; `make evening` prints the whole comparison.
struct EveningTests {
  private static let evening = Evening(seed: House.defaultSeed)

  private static func play(
    _ mesh: MeshParameters,
    _ way: House.Way,
    _ evening: Evening = evening,
    seed: UInt64 = House.defaultSeed
  ) -> House.Outcome {
    House(evening, mesh, way, seed: seed).play()
  }

  @Test(arguments: ["fast", "slow", "lossy"])
  func `with Settle no value is lost, and without it many are`(name: String) throws {
    let mesh = try #require(MeshParameters.all.first { $0.name == name })
    let with = Self.play(mesh, .settle(LaneLimits(window: .auto)))
    let without = Self.play(mesh, .direct)
    #expect(with.finals > 300)
    #expect(with.finals == without.finals)
    #expect(with.lost == 0)
    #expect(with.dropped == 0)
    #expect(without.lost > 50)
    #expect(with.changes == without.changes)
    #expect(with.messages * 5 < without.messages)
  }

  @Test(arguments: MeshParameters.all)
  func `no value is lost in other evenings`(mesh: MeshParameters) {
    for seed in UInt64(100)..<104 {
      let evening = Evening(seed: seed)
      let outcome = Self.play(mesh, .settle(LaneLimits(window: .auto)), evening, seed: seed)
      #expect(outcome.lost == 0, "seed \(seed)")
      #expect(outcome.failed == 0, "seed \(seed)")
    }
  }

  @Test func `an evening whose times are no whole nanoseconds ends`() {
    let evening = Evening(seed: 100)
    #expect(Self.play(.fast, .direct, evening, seed: 100).changes == evening.changes.count)
  }

  @Test func `an evening is the same each time it is played`() {
    for way in [House.Way.direct, .settle(LaneLimits(window: .auto))] {
      #expect(Self.play(.slow, way) == Self.play(.slow, way))
    }
  }

  @Test func `an evening has what its description says`() {
    let changes = Self.evening.changes
    #expect(Set(changes.map(\.device)).count == Evening.deviceCount)
    #expect(Set(changes.map(\.value)).count == changes.count)
    #expect(zip(changes, changes.dropFirst()).allSatisfy { $0.at <= $1.at })
    #expect((changes.last?.at ?? .zero) < Evening.end)
    #expect(changes.contains { $0.device == Evening.deadLamp })
    #expect(changes.count > 4000)
  }
}

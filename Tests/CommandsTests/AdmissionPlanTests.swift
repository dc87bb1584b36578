// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Testing
import Values

@testable import Commands

@Suite struct AdmissionPlanTests {
  /// The first key is urgent at 0 and ends the second.
  private static let relations = Relations.all(
    in: Registry([
      Device(
        id: "d",
        name: "D",
        properties: [
          .level("a") {
            $0.urgent = [0]
            $0.ends = ["b"]
          }, .level("b"), .level("c"),
        ]
      )
    ])
  )

  private func accept(
    _ keys: [(key: Int32, isUrgent: Bool)],
    waiting: [Int32] = [],
    limit: Int
  ) -> ValidationError? {
    var plan = AdmissionPlan(count: waiting.count, limit: limit)
    for (key, isUrgent) in keys {
      plan.accept(KeyIndex(key), isUrgent: isUrgent, Self.relations[KeyIndex(key)]) { key in
        AdmissionPlan.Waiting(quiet: waiting.contains(key.rawValue))
      }
    }
    return plan.refusal
  }

  @Test func `values find room up to the limit`() {
    #expect(accept([(0, false), (1, false)], limit: 2) == nil)
    #expect(
      accept([(0, false), (1, false), (2, false)], limit: 2)
        == .noRoomForAll(needed: 3, free: 2, limit: 2)
    )
  }

  @Test func `a newer value of a key that waits needs no room`() {
    #expect(accept([(0, false), (1, false)], waiting: [0, 1], limit: 2) == nil)
  }

  @Test func `an urgent value always finds room, and makes room`() {
    #expect(accept([(0, true)], waiting: [1, 2], limit: 2) == nil)
    #expect(accept([(0, true), (1, false)], waiting: [1], limit: 2) == nil)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Testing

@Test func `a test clock plays the queue`() async throws {
  let clock = LastOutTestClock()
  let queue = LastOutQueue(policy: Policy(delay: .milliseconds(300)), clock: clock)
  try await confirmation { confirm in
    queue.enqueue(forKey: "lamp") { confirm() }
    clock.advance(by: .milliseconds(300))
    try await clock.sleep(for: .zero)
  }
  let player = TimelinePlayer<Int>(policy: .live)
  #expect(player.play([.set("lamp", 1, at: .zero)]).map(\.value) == [1])
}

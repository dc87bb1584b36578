// Settle
// SPDX-License-Identifier: Apache-2.0

internal import LastOut

/// One engine's view of the virtual time; its tasks run where they become due.
final class TestTimekeeper: Timekeeper {
  private let hands: ClockHands

  init(_ hands: ClockHands) {
    self.hands = hands
  }

  var now: Moment { hands.now }

  func attach(_ engine: QueueEngine) { hands.attach(engine) }

  func wake(at deadline: Moment) {}

  func perform(_ task: @escaping @Sendable () -> Void) { task() }

  func stop() {}
}

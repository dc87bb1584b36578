// Settle
// SPDX-License-Identifier: Apache-2.0

internal import LastOut

/// One engine's view of the virtual time.
final class TestTimekeeper: Timekeeper {
  private let hands: ClockHands
  private let sleeping: Sleepers

  init(_ hands: ClockHands, sleeping: Sleepers) {
    self.hands = hands
    self.sleeping = sleeping
  }

  var sleeps: Int { sleeping.total }

  var now: Moment { hands.now }

  func attach(_ engine: any ServedEngine) { hands.attach(engine) }

  func wake(at deadline: Moment) {}

  func stop() {}
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import LastOut

/// One engine's view of the virtual time.
final class TestTimekeeper: Timekeeper {
  private let hands: ClockHands

  init(_ hands: ClockHands) {
    self.hands = hands
  }

  var now: Moment { hands.now }

  func attach(_ engine: any ServedEngine) { hands.attach(engine) }

  func wake(at deadline: Moment) {}

  func stop() {}
}

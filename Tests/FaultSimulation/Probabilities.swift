// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOutTesting

/// The probability of each fault in one run, in percent; every seed has its own mixture, so that
/// some runs have hardly any faults and others only one kind.
struct Probabilities {
  var time: Int
  var refusal: Int
  var lostAnswer: Int
  var slowLink: Int
  var cut: Int
  var drop: Int
  var interim: Int
  var hand: Int
  var power: Int
  var repetition: Int
  var pause: Int
  var restart: Int
  var shutdown: Int
  /// With a journal, in addition to ``restart``.
  var crash: Int
  var disk: Int
  /// A new process cannot open the journal's file at first.
  var lateOpening: Int
  /// The wall clock is wrong after a power cut.
  var wrongClock: Int
  var slowDevice: Int
  var missedTurn: Int
  /// The devices are reloaded.
  var reload: Int
  /// The number of frequently changed keys; the fewer, the more they interact.
  var favourites: Int
  /// The window of unanswered publishes.
  var window: Int

  init(_ random: inout SeededGenerator) {
    func draw(_ percent: Int) -> Int { random.chance(65) ? random.within(1...percent) : 0 }
    time = random.within(25...75)
    refusal = draw(10)
    lostAnswer = draw(8)
    slowLink = draw(30)
    cut = draw(6)
    drop = draw(40)
    interim = draw(60)
    hand = draw(12)
    power = draw(6)
    repetition = draw(20)
    pause = draw(3)
    restart = random.chance(40) ? 1 : 0
    shutdown = random.chance(40) ? 1 : 0
    crash = draw(4)
    disk = draw(6)
    lateOpening = draw(70)
    wrongClock = draw(60)
    slowDevice = draw(40)
    missedTurn = draw(30)
    reload = random.chance(30) ? 2 : 0
    favourites = random.within(1...14)
    window = random.chance(50) ? 20 : random.within(1...4)
  }
}

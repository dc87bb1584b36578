// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOutTesting

/// How unkind the world of one life is; every seed has its own mixture.
struct HouseholdTraits {
  /// No device, link, disk or process fails; acknowledgements may still be late, and devices
  /// travel.
  let isFaultless: Bool
  let isJournalled: Bool
  let groupsHaveTopics: Bool
  /// Whether devices get back what they had before they lost their power.
  let restores: Bool
  /// How long a message takes to the broker, in milliseconds.
  let network: ClosedRange<Int>
  /// How long the broker's acknowledgement takes, and how often it is one of the late ones.
  let acknowledgement: ClosedRange<Int>
  let lateAcknowledgements: Int
  /// How long a commit takes, in milliseconds.
  let commit: ClosedRange<Int>
  /// Probabilities in percent.
  let travelling: Int
  let repeating: Int
  let hands: Int
  let lostAcknowledgements: Int
  let cuts: Int
  let powerLosses: Int
  let crashes: Int
  let refusals: Int
  let clamps: Int
  let garbage: Int
  let drops: Int
  let lateDevices: Int
  /// How often the device files are read again, in percent of the chapters.
  let reloads: Int

  init(_ random: inout SeededGenerator, seed: UInt64) {
    isFaultless = seed.isMultiple(of: 3)
    isJournalled = seed % 4 != 1
    restores = seed % 5 < 3
    groupsHaveTopics = random.chance(60)
    network = [0...20, 0...20, 0...300][random.below(3)]
    acknowledgement = [0...30, 0...1000, 0...5000, 2000...5000][random.below(4)]
    lateAcknowledgements = random.within(10...90)
    commit = [1...25, 1...300, 1...5000][random.below(3)]
    travelling = random.within(20...100)
    repeating = random.within(0...100)
    let isFaultless = isFaultless
    func fault(_ percent: Int, _ random: inout SeededGenerator) -> Int {
      let drawn = random.chance(50) ? random.within(1...percent) : 0
      return isFaultless ? 0 : drawn
    }
    hands = fault(60, &random)
    lostAcknowledgements = fault(10, &random)
    cuts = fault(40, &random)
    powerLosses = fault(40, &random)
    crashes = fault(40, &random)
    refusals = fault(15, &random)
    clamps = fault(30, &random)
    garbage = fault(20, &random)
    drops = fault(15, &random)
    lateDevices = fault(40, &random)
    reloads = random.chance(40) ? random.within(1...60) : 0
  }
}

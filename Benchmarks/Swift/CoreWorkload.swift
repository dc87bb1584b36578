// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// The loop-owned queue with a table of names, to compare with the C reference.
struct CoreWorkload: ~Copyable {
  static let changesPerBurst = 10
  static let changesPerWake = 64
  static let delay = Duration.milliseconds(300)

  private let names: Names
  private var table: KeyTable
  private var core: LastOutCore<Int>
  private var now = Moment(nanoseconds: 1)
  private(set) var runs = 0
  private(set) var checksum: UInt64 = 0

  /// Every name is known and every key has a pending value afterwards.
  init(names: Names) {
    self.names = names
    table = KeyTable(capacity: names.count, bytes: names.bytes.count)
    core = LastOutCore(policy: Policy(delay: Self.delay), capacity: names.count)
    let bytes = names.bytes.span
    for key in 0..<names.count {
      _ = table.intern(bytes.extracting(names.range(of: key)))
    }
    changeAll(round: 0)
  }

  /// Changes without runs.
  mutating func enqueue(rounds: Int) {
    for round in 1...max(rounds, 1) { changeAll(round: round) }
  }

  /// Bursts in which each key changes ten times and then runs.
  mutating func burst(rounds: Int) {
    for _ in 0..<rounds {
      for round in 0..<Self.changesPerBurst { changeAll(round: round) }
      settle()
    }
  }

  /// The CPU time in nanoseconds to run all keys at once, each time after all have changed.
  mutating func flush(rounds: Int) -> UInt64 {
    var spent: UInt64 = 0
    for round in 0..<rounds {
      if round > 0 { changeAll(round: round) }
      let before = Meter.cpu
      settle()
      spent += Meter.cpu - before
    }
    return spent
  }

  /// Lets the quiet period pass and runs everything.
  mutating func settle() {
    now = now.advanced(by: Self.delay)
    while let run = core.nextRun(at: now) {
      runs += 1
      checksum &+= UInt64(run.value ^ Int(run.key.rawValue))
      core.finish(run.key, at: now)
    }
  }

  private mutating func changeAll(round: Int) {
    let names = names
    let bytes = names.bytes.span
    let starts = names.starts.span
    let order = names.order.span
    for place in order.indices {
      let number = Int(order[place])
      // The caller has the bytes of the name.
      let range = unsafe Range(
        uncheckedBounds: (Int(starts[unchecked: number]), Int(starts[unchecked: number + 1]))
      )
      let name = unsafe bytes.extracting(unchecked: range)
      let key = table.intern(name)
      core.enqueue(round << 32 | number, for: key, at: now)
      if place % Self.changesPerWake == 0 { now.nanoseconds &+= 1000 }
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut
import LastOutTesting
import Testing
import Values

/// Several values at once find room all together, or are refused before the first.
@Suite struct RoomTests {
  /// Keys `a` to `d`, the switch `off`, whose urgent value ends `a`, and `x`, which excludes `y`.
  private func bench(limit: Int) -> Bench {
    var settings = CommandSettings()
    settings.pendingLimit = limit
    let off = Property.word("off", kind: .choice(["off", "on"])) {
      $0.urgent = [.text("off")]
      $0.ends = ["a"]
    }
    return Bench(
      [
        .of(
          "d",
          [
            .level("a"), .level("b"), .level("c"), .level("d"), off,
            .level("x") { $0.excludes = ["y"] }, .level("y"),
          ]
        )
      ],
      isConnected: false,
      settings: settings
    )
  }

  /// A value each: the urgent one for `off`, a number for all others.
  private func values(
    _ bench: borrowing Bench,
    _ names: [String]
  ) throws -> [(key: KeyIndex, value: Value)] {
    try names.map { (try bench.key($0), $0 == "off" ? .text("off") : 7) }
  }

  @Test(
    arguments: [
      // limit, pending, ready, set at once, what it is refused with
      (3, [], [], ["a", "b", "c"], nil),
      (2, [], [], ["a", "b", "c"], (needed: 3, free: 2)),
      (2, ["a"], [], ["a", "b"], nil),
      (2, ["a"], [], ["a", "b", "c"], (needed: 2, free: 1)),
      (2, ["a", "b"], [], ["a", "b"], nil),
      (2, ["a", "b"], [], ["c"], (needed: 1, free: 0)),
      // A value that waits for its broker is not replaced by one that is not quiet yet.
      (2, [], ["a"], ["a", "b"], (needed: 2, free: 1)),
      (2, [], ["a"], ["b", "a"], nil),
      // An urgent value is always taken, takes room, and makes room.
      (2, ["b"], [], ["off", "c"], (needed: 2, free: 1)),
      (2, ["a"], [], ["off", "b"], nil),
      (2, ["a", "b"], [], ["off", "a"], (needed: 1, free: 0)),
      // Of two that exclude each other only the newer waits.
      (2, ["x"], [], ["y", "a"], nil),
      (2, [], [], ["x", "y", "a"], nil),
      (1, ["x"], [], ["y"], (needed: 1, free: 0)),
    ] as [(Int, [String], [String], [String], (needed: Int, free: Int)?)]
  )
  func `what is not refused before the first value is taken to the last`(
    limit: Int,
    pending: [String],
    ready: [String],
    names: [String],
    refusal: (needed: Int, free: Int)?
  ) throws {
    var bench = bench(limit: limit)
    for name in pending { try bench.set(name, 1) }
    for name in ready { try bench.set(name, 1, now: true) }
    let values = try values(bench, names)
    var error: ValidationError?
    do throws(ValidationError) {
      try bench.machine.checkRoom(for: values)
    } catch let refused {
      error = refused
    }
    #expect(
      error == refusal.map { .noRoomForAll(needed: $0.needed, free: $0.free, limit: limit) }
    )
    guard error == nil else { return }
    for name in names { try bench.set(name, name == "off" ? .text("off") : 7) }
    #expect(bench.machine.log.statistics.rejected == 0)
  }

  @Test(arguments: UInt64(1)...200)
  func `whatever waits, a set that passes the check is taken in full`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let names = ["a", "b", "c", "d", "off", "x", "y"]
    var bench = bench(limit: Int.random(in: 1...7, using: &random))
    var isTaken = false
    for _ in 0..<60 {
      let chosen = names.shuffled(using: &random).prefix(Int.random(in: 1...5, using: &random))
      // As at the gateway, urgent members come first.
      let set = chosen.filter { $0 == "off" } + chosen.filter { $0 != "off" }
      let values = try values(bench, set)
      if (try? bench.machine.checkRoom(for: values)) != nil {
        let skipsQuiet = Bool.random(using: &random)
        for name in set {
          try bench.set(name, name == "off" ? .text("off") : 7)
        }
        if skipsQuiet, let last = set.last {
          bench.machine.flush(try bench.key(last), at: bench.now)
        }
        isTaken = true
      }
      if Int.random(in: 0..<8, using: &random) == 0 {
        bench.machine.cancel(
          try bench.key(names.randomElement(using: &random) ?? "a"),
          at: bench.now
        )
      }
      bench.pass(Int.random(in: 0...200, using: &random))
    }
    #expect(isTaken == true)
  }
}

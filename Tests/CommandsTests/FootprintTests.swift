// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Glibc
import JSON
import LastOut
import Testing
import Values

@Suite struct FootprintTests {
  @Test func `an hour of traffic on 100,000 keys leaves no wake-up behind`() throws {
    let devices = (0..<1000).map { number in
      Device.of("d\(number)", (0..<100).map { .seen("p\($0)", retries: 1) })
    }
    var bench = Bench(devices)
    bench.machine.log.isWatched = false
    #expect(bench.wait() == nil)
    for second in 0..<3600 {
      let key = KeyIndex(Int32(second * 7919 % 100_000))
      for value in 0..<3 {
        try bench.machine.change(.set(.number(Double(value))), of: key, at: bench.now)
      }
      bench.pass(400)
      bench.send()
      if second % 2 == 0 { bench.machine.reported(key, 2, at: bench.now) }
      bench.pass(600)
      bench.machine.log.events.removeAll(keepingCapacity: true)
      bench.machine.log.statuses.changedKeys.removeAll(keepingCapacity: true)
    }
    for _ in 0..<3 {
      bench.pass(5000)
      bench.send()
    }
    #expect(bench.wait() == nil)
    #expect(bench.hasUnsent == false)
    #expect(bench.machine.log.statistics.confirmed == 1800)
    #expect(bench.machine.log.statistics.failed == 1800)
  }

  /// Unoptimised generic code allocates for values that are passed around: only an optimised build
  /// shows what the machine itself does.
  @Test(.enabled(if: Heap.canCount && Heap.isOptimised))
  func `a change that nobody waits for allocates nothing`() async {
    await #expect(processExitsWith: .success) {
      var bench = Bench(.level("a"), .seen("b"))
      bench.machine.log.isWatched = false
      try Heap.turn(&bench, 200)
      Heap.exhaust()
      let before = Heap.inUse()
      try Heap.turn(&bench, 20_000)
      guard Heap.inUse() == before else { preconditionFailure("The hot path allocated.") }
    }
  }

  @Test(.enabled(if: Heap.canCount)) func `the count sees what is freed at once`() async {
    await #expect(processExitsWith: .failure) {
      var bench = Bench(.level("a"), .seen("b"))
      bench.machine.log.isWatched = false
      try Heap.turn(&bench, 200)
      Heap.exhaust()
      let before = Heap.inUse()
      bench.machine.log.isWatched = true
      try Heap.turn(&bench, 200)
      guard Heap.inUse() == before else { preconditionFailure("This is the expected end.") }
    }
  }

  @Test(.enabled(if: Heap.canCount)) func `memory stays flat however long a broker is away`() async
  {
    await #expect(processExitsWith: .success) {
      var bench = Bench([.of("d", [.seen("a"), .seen("b")])], isConnected: false)
      try Heap.settle(&bench, 200)
      let before = Heap.inUse()
      try Heap.settle(&bench, 20_000)
      guard Heap.inUse() < before + 4096 else { preconditionFailure("Something piled up.") }
    }
  }
}

/// How much memory the C library has handed out.
private enum Heap {
  private typealias Count = @convention(c) (UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?

  // The call returns its structure through a hidden first argument, on this architecture.
  private static var count: Count? {
    #if arch(x86_64)
      guard let symbol = unsafe dlsym(nil, "mallinfo2") else { return nil }
      return unsafe unsafeBitCast(symbol, to: Count.self)
    #else
      return nil
    #endif
  }

  /// Not where a sanitizer has its own allocator.
  static var canCount: Bool { inUse() > 0 }

  static var isOptimised: Bool {
    var isOptimised = true
    assert({ isOptimised = false }() == ())
    return isOptimised
  }

  /// Uses up the small pieces kept for reuse: what is allocated from now on raises the number, even
  /// when it is freed at once.
  static func exhaust() {
    for size in stride(from: 8, through: 1032, by: 16) {
      for _ in 0..<64 { _ = unsafe malloc(size) }
    }
  }

  /// The bytes in use: the eighth number of `struct mallinfo2`.
  static func inUse() -> UInt {
    guard let count = unsafe count else { return 0 }
    var numbers: [10 of UInt] = .init(repeating: 0)
    return unsafe withUnsafeMutableBytes(of: &numbers) { bytes in
      guard let base = bytes.baseAddress else { return 0 }
      _ = unsafe count(base)
      return unsafe base.load(fromByteOffset: 56, as: UInt.self)
    }
  }

  /// Bare sets of numbers, each replacing the one before.
  static func turn(_ bench: inout Bench, _ count: Int) throws {
    for number in 0..<count {
      try bench.machine.change(
        .set(.number(Double(number % 100))),
        of: KeyIndex(Int32(number % 2)),
        at: bench.now
      )
      bench.machine.log.statuses.changedKeys.removeAll(keepingCapacity: true)
    }
  }

  /// Values that settle with nobody to go to.
  static func settle(_ bench: inout Bench, _ count: Int) throws {
    bench.machine.log.isWatched = false
    for number in 0..<count {
      try bench.machine.change(
        .set(.number(Double(number % 100))),
        of: KeyIndex(Int32(number % 2)),
        at: bench.now,
        ChangeOptions(ttl: .seconds(86_400))
      )
      bench.pass(300)
      bench.machine.log.statuses.changedKeys.removeAll(keepingCapacity: true)
      bench.machine.log.events.removeAll(keepingCapacity: true)
    }
  }
}

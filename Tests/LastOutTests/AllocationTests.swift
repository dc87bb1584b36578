// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Testing

/// Counts in a process of its own, where no other test allocates.
@Suite(.enabled(if: Heap.canCount)) struct AllocationTests {
  @Test func `a change allocates nothing once the queue is warm`() async {
    await #expect(processExitsWith: .success) {
      var workload = Workload()
      workload.turn(5000)
      Heap.exhaust()
      let before = Heap.inUse()
      workload.turn(10_000)
      guard Heap.inUse() == before else { preconditionFailure("The hot path allocated.") }
    }
  }

  @Test func `looking up a known name allocates nothing`() async {
    await #expect(processExitsWith: .success) {
      var table = KeyTable()
      let name = "a name that is longer than fifteen bytes"
      let bytes = Array(name.utf8)
      var before: UInt = 0
      for round in 0..<1000 {
        _ = table.intern(name)
        _ = table.find(bytes.span)
        guard round == 0 else { continue }
        // The first round includes one-time setup of the runtime.
        Heap.exhaust()
        before = Heap.inUse()
      }
      guard Heap.inUse() == before else { preconditionFailure("The look-up allocated.") }
    }
  }

  @Test func `a queue or a debounced function that was never used needs less than 600 bytes`() async
  {
    await #expect(processExitsWith: .success) {
      var queues: [LastOutQueue] = []
      var functions: [Debounce] = []
      queues.reserveCapacity(1000)
      functions.reserveCapacity(1000)
      for _ in 0..<10 { queues.append(LastOutQueue()) }
      functions.append(debounce(delay: .seconds(1)))
      let start = Heap.inUse()
      for _ in 0..<500 { queues.append(LastOutQueue()) }
      let middle = Heap.inUse()
      for _ in 0..<500 { functions.append(debounce(delay: .seconds(1))) }
      let end = Heap.inUse()
      precondition(queues.allSatisfy { $0.pendingKeys.isEmpty && $0.cancelAll() == 0 })
      precondition(queues.allSatisfy { $0.flushAll() == [] && $0.flush(forKey: "a") == .nothing })
      precondition(Heap.inUse() < end + 10_000, "Queries need memory.")
      precondition(middle - start < 500 * 600, "\((middle - start) / 500) bytes a queue")
      precondition(end - middle < 500 * 600, "\((end - middle) / 500) bytes a function")
    }
  }

  @Test func `a change of a pending task allocates nothing but the caller's closure`() async {
    await #expect(processExitsWith: .success) {
      let queue = LastOutQueue(policy: Policy(delay: .seconds(3600)))
      let task: @Sendable () -> Void = {}
      for _ in 0..<100 { queue.enqueue(forKey: "lamp", task: task) }
      Heap.exhaust()
      let before = Heap.inUse()
      for _ in 0..<1000 { queue.enqueue(forKey: "lamp", task: task) }
      guard Heap.inUse() == before else { preconditionFailure("A change allocated.") }
    }
  }

  @Test func `the count sees an allocation that is freed at once`() async {
    await #expect(processExitsWith: .failure) {
      var workload = Workload()
      workload.turn(5000)
      Heap.exhaust()
      let before = Heap.inUse()
      workload.turn(10)
      unsafe UnsafeMutableRawPointer.allocate(byteCount: 48, alignment: 16).deallocate()
      guard Heap.inUse() == before else { preconditionFailure("This is the expected end.") }
    }
  }
}

/// Bursts of changes over all lists and the heap, each ending in runs.
private struct Workload: ~Copyable {
  private var core = LastOutCore<Int>(policy: Policy(delay: .milliseconds(1)))
  private var now = Moment.zero
  private let keys = (0..<32).map { KeyIndex($0) }

  init() {
    for key in keys where key.rawValue % 2 == 0 {
      core.setPolicy(
        Policy(
          delay: .milliseconds(2),
          maxWait: .milliseconds(5),
          leading: key.rawValue % 4 == 0
        ),
        for: key
      )
    }
  }

  mutating func turn(_ count: Int) {
    for number in 0..<count {
      now = now.advanced(by: .microseconds(70))
      while let run = core.nextRun(at: now) { core.finish(run.key, at: now) }
      let key = keys[number % keys.count]
      core.enqueue(number, for: key, at: now, delay: number % 7 == 0 ? .microseconds(333) : nil)
      while let run = core.nextReady(at: now) { core.finish(run.key, at: now) }
      if number % 50 == 0, case .run(let run) = core.flush(key, at: now) {
        core.finish(run.key, at: now)
      }
      if number % 90 == 0 { _ = core.cancel(key) }
    }
  }
}

/// How much memory the C library has handed out.
private enum Heap {
  /// The ten numbers of `struct mallinfo2`; the eighth is the memory in use.
  private typealias Count = @convention(c) (UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?

  // The call returns its structure through a hidden first argument, on this architecture.
  // Looked up once, since looking up allocates.
  private static let count: Count? = {
    #if arch(x86_64)
      guard let symbol = unsafe dlsym(nil, "mallinfo2") else { return nil }
      return unsafe unsafeBitCast(symbol, to: Count.self)
    #else
      return nil
    #endif
  }()

  /// Not where a sanitizer has its own allocator.
  static var canCount: Bool { inUse() > 0 }

  /// Uses up the small pieces kept for reuse: what is allocated from now on raises the number, even
  /// when it is freed at once.
  static func exhaust() {
    _ = inUse()
    for size in stride(from: 8, through: 1032, by: 16) {
      for _ in 0..<1000 { _ = unsafe malloc(size) }
    }
  }

  /// The bytes in use.
  static func inUse() -> UInt {
    guard let count = unsafe count else { return 0 }
    var numbers: [10 of UInt] = .init(repeating: 0)
    return unsafe withUnsafeMutableBytes(of: &numbers) { bytes in
      guard let base = bytes.baseAddress else { return 0 }
      _ = unsafe count(base)
      return unsafe base.load(fromByteOffset: 56, as: UInt.self)
    }
  }
}

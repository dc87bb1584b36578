// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations

/// The lateness of values in the gateway's loop: the event loop, its timers and the queue's core.
///
/// Each millisecond some keys change, each ten times (once, if there is only one change), and 20.5
/// ms later they run, halfway between two milliseconds.
final class LatenessWorkload {
  private static let blocks = 40
  private static let delay = Duration.microseconds(20_500)

  private let length: Int
  private let repeats: Int
  private let width: Int
  private let loop: EventLoop
  private var core: LastOutCore<Int>
  private var changeTimer: LoopTimer?
  private var dueTimer: LoopTimer?
  private var next = Moment.zero
  private var done = 0
  /// Nanoseconds between a value's due moment and its run.
  private var late: [UInt64] = []
  private(set) var early = 0

  /// `changes` per millisecond, for `length` milliseconds.
  init(changes: Int, length: Int) throws {
    self.length = length
    repeats = changes < 10 ? 1 : 10
    width = changes / repeats
    loop = try EventLoop()
    core = LastOutCore(policy: Policy(delay: Self.delay), capacity: width * Self.blocks)
    late.reserveCapacity(width * length)
    changeTimer = try loop.makeTimer { [unowned self] in change() }
    dueTimer = try loop.makeTimer { [unowned self] in run(at: EventLoop.now()) }
    loop.afterBatch = { [unowned self] in settleUp() }
  }

  /// Runs to the end and returns how late each value was, sorted.
  func lateness() -> [UInt64] {
    next = EventLoop.now().advanced(by: .milliseconds(1))
    changeTimer?.arm(at: next)
    loop.run()
    return late.sorted()
  }

  private func change() {
    let now = EventLoop.now()
    run(at: now)  // Due values run before new changes.
    let first = done % Self.blocks * width
    for round in 0..<repeats {
      for key in first..<first + width {
        core.enqueue(round, for: KeyIndex(Int32(key)), at: now)
      }
    }
    done += 1
    next = next.advanced(by: .milliseconds(1))
    if done < length { changeTimer?.arm(at: next) }
  }

  private func run(at now: Moment) {
    while let run = core.nextRun(at: now) {
      let left = EventLoop.now().nanoseconds
      if left < run.due.nanoseconds { early += 1 } else { late.append(left - run.due.nanoseconds) }
      core.finish(run.key, at: now)
    }
  }

  private func settleUp() {
    run(at: EventLoop.now())
    if let deadline = core.nextDeadline {
      dueTimer?.arm(at: deadline)
    } else if done == length {
      loop.stop()
    }
  }
}

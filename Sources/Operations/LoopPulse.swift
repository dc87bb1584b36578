// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc
import LastOut
import Synchronization

/// A named phase of an event loop, shown when it takes too long.
package struct LoopPhase: Hashable, Sendable {
  let number: UInt8
}

/// The current phase of an event loop, for the watchdog thread.
///
/// It is one word: the start of the batch, in milliseconds, and the number of the phase; zero while
/// the loop sleeps. The loop stores it, the watchdog reads it.
final class LoopPulse: Sendable {
  private let word = Atomic<UInt64>(0)
  /// Whether the watchdog checks again by itself; also true without a watchdog.
  private let isArmed = Atomic<Bool>(true)
  /// The watchdog's timer descriptor; -1 without one.
  private let timer = Atomic<Int32>(-1)
  /// The maximum length of a batch, in milliseconds.
  private let limit = Atomic<UInt64>(0)
  private let names = Locked(["other"])

  /// The phase with this name; phases after the first 255 share one.
  func phase(_ name: String) -> LoopPhase {
    names.withLock { names in
      if let known = names.firstIndex(of: name) { return LoopPhase(number: UInt8(known)) }
      guard names.count <= Int(UInt8.max) else { return LoopPhase(number: 0) }
      names.append(name)
      return LoopPhase(number: UInt8(names.count - 1))
    }
  }

  // MARK: - The loop's side

  /// Enters a phase, in a batch that started at `start`, in milliseconds of CLOCK_MONOTONIC.
  func enter(_ phase: LoopPhase, batch start: UInt64) {
    // Sequentially consistent with the watchdog's store and load: one of the two sees the other's.
    word.store(start << 8 | UInt64(phase.number), ordering: .sequentiallyConsistent)
    if !isArmed.load(ordering: .sequentiallyConsistent) { arm(batch: start) }
  }

  /// Records that the loop is about to sleep.
  func sleep() { word.store(0, ordering: .releasing) }

  /// Makes the watchdog check when the batch has taken too long.
  private func arm(batch start: UInt64) {
    isArmed.store(true, ordering: .sequentiallyConsistent)
    let deadline = start + limit.load(ordering: .relaxed)
    Self.set(timer.load(ordering: .acquiring), to: deadline)
  }

  // MARK: - The watchdog's side

  /// The phase and the batch of the loop.
  struct Reading {
    var start: UInt64
    var name: String
  }

  func attach(timer descriptor: Int32, limit milliseconds: UInt64) {
    limit.store(milliseconds, ordering: .relaxed)
    timer.store(descriptor, ordering: .releasing)
    isArmed.store(false, ordering: .sequentiallyConsistent)
  }

  /// Removes the watchdog; call it only on the loop's thread.
  func detach() {
    isArmed.store(true, ordering: .sequentiallyConsistent)
    timer.store(-1, ordering: .releasing)
  }

  /// Reads the phase of the loop, after the timer has fired; `nil` while the loop sleeps.
  ///
  /// The loop's next event then sets the timer again.
  func read() -> Reading? {
    isArmed.store(false, ordering: .sequentiallyConsistent)
    let word = word.load(ordering: .sequentiallyConsistent)
    guard word != 0 else { return nil }
    let number = Int(word & 0xFF)
    return Reading(start: word >> 8, name: names.withLock { $0[number] })
  }

  /// Checks again when the batch of `reading` has taken too long.
  func look(again reading: Reading) { arm(batch: reading.start) }

  /// Sets a timer descriptor to a time in milliseconds.
  static func set(_ descriptor: Int32, to milliseconds: UInt64) {
    guard descriptor >= 0 else { return }
    var setting = itimerspec()
    setting.it_value.tv_sec = Int(milliseconds / 1000)
    // Zero would disarm.
    setting.it_value.tv_nsec = Int(milliseconds % 1000) * 1_000_000 + 1
    unsafe timerfd_settime(descriptor, Int32(TFD_TIMER_ABSTIME), &setting, nil)
  }
}

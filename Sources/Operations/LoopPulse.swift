// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc
import LastOut
import Synchronization

/// A name for something that an event loop does, shown when it takes too long.
package struct LoopPhase: Hashable, Sendable {
  let number: UInt8
}

/// What an event loop is at, kept for a thread beside it.
///
/// One word: when the batch began, in milliseconds, and the number of the phase; zero while the
/// loop sleeps. The loop stores it, the watchdog reads it.
final class LoopPulse: Sendable {
  private let word = Atomic<UInt64>(0)
  /// The watchdog will look again by itself; also without a watchdog.
  private let isArmed = Atomic<Bool>(true)
  /// The watchdog's timer descriptor; -1 without one.
  private let timer = Atomic<Int32>(-1)
  /// How long a batch may take, in milliseconds.
  private let limit = Atomic<UInt64>(0)
  private let names = Locked(["other"])

  /// The phase called `name`, the same for the same name; of more than 255 the rest share one.
  func phase(_ name: String) -> LoopPhase {
    names.withLock { names in
      if let known = names.firstIndex(of: name) { return LoopPhase(number: UInt8(known)) }
      guard names.count <= Int(UInt8.max) else { return LoopPhase(number: 0) }
      names.append(name)
      return LoopPhase(number: UInt8(names.count - 1))
    }
  }

  // MARK: - The loop's side

  /// Something begins, in a batch that began at `start`, in milliseconds of CLOCK_MONOTONIC.
  func enter(_ phase: LoopPhase, batch start: UInt64) {
    // In one order with the watchdog's own store and load: one of the two sees the other's.
    word.store(start << 8 | UInt64(phase.number), ordering: .sequentiallyConsistent)
    if !isArmed.load(ordering: .sequentiallyConsistent) { arm(batch: start) }
  }

  /// The loop is about to sleep.
  func sleep() { word.store(0, ordering: .releasing) }

  /// Lets the watchdog look when the batch has taken too long.
  private func arm(batch start: UInt64) {
    isArmed.store(true, ordering: .sequentiallyConsistent)
    let deadline = start + limit.load(ordering: .relaxed)
    Self.set(timer.load(ordering: .acquiring), to: deadline)
  }

  // MARK: - The watchdog's side

  /// What the loop is at.
  struct Reading {
    var start: UInt64
    var name: String
  }

  func attach(timer descriptor: Int32, limit milliseconds: UInt64) {
    limit.store(milliseconds, ordering: .relaxed)
    timer.store(descriptor, ordering: .releasing)
    isArmed.store(false, ordering: .sequentiallyConsistent)
  }

  /// Only on the loop's thread.
  func detach() {
    isArmed.store(true, ordering: .sequentiallyConsistent)
    timer.store(-1, ordering: .releasing)
  }

  /// Reads what the loop is at, once the timer has run out; `nil` while the loop sleeps.
  ///
  /// From now on the loop's next event sets the timer again.
  func take() -> Reading? {
    isArmed.store(false, ordering: .sequentiallyConsistent)
    let word = word.load(ordering: .sequentiallyConsistent)
    guard word != 0 else { return nil }
    let number = Int(word & 0xFF)
    return Reading(start: word >> 8, name: names.withLock { $0[number] })
  }

  /// Looks again when the batch of `reading` has taken too long.
  func look(again reading: Reading) { arm(batch: reading.start) }

  /// Sets a timer descriptor to a moment in milliseconds.
  static func set(_ descriptor: Int32, to milliseconds: UInt64) {
    guard descriptor >= 0 else { return }
    var setting = itimerspec()
    setting.it_value.tv_sec = Int(milliseconds / 1000)
    // Zero would disarm.
    setting.it_value.tv_nsec = Int(milliseconds % 1000) * 1_000_000 + 1
    unsafe timerfd_settime(descriptor, Int32(TFD_TIMER_ABSTIME), &setting, nil)
  }
}

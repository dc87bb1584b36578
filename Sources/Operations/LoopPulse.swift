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

/// Reports when an event loop takes too long for one batch of events, and in which phase.
///
/// It checks from its own thread, which sleeps until a batch could have taken too long, and without
/// a limit while the loop sleeps: an idle process is woken at most once after its last event. The
/// loop pays one atomic store per event, and at most one system call per ``limit``.
package final class LoopWatchdog {
  package let limit: Duration
  private let pulse: LoopPulse
  private let patrol: Patrol
  private let thread: WorkerThread

  /// Starts watching; create and release it on the loop's thread.
  ///
  /// - Parameters:
  ///   - loop: The loop to watch; at most one watchdog at a time.
  ///   - limit: The maximum length of a batch, at least a millisecond.
  ///   - onStall: Called once for each batch that takes longer, on the watchdog's thread, with the
  ///     name of the phase and the time since the start of the batch.
  /// - Throws: If the process is out of descriptors or threads.
  package init(
    _ loop: EventLoop,
    limit: Duration = .milliseconds(250),
    onStall: @escaping @Sendable (_ what: String, _ elapsed: Duration) -> Void
  ) throws(OperationsError) {
    self.limit = limit
    pulse = loop.pulse
    let milliseconds = max(limit / .milliseconds(1), 1)
    patrol = try Patrol(pulse: loop.pulse, limit: UInt64(milliseconds), onStall: onStall)
    thread = try WorkerThread { [patrol] in patrol.run() }
    pulse.attach(timer: patrol.timer, limit: UInt64(milliseconds))
  }

  deinit {
    pulse.detach()
    patrol.stop()
    thread.join()
  }

  /// The number of wake-ups of the watchdog's thread.
  package var wakeUps: Int { patrol.wakeUps.load(ordering: .relaxed) }

  /// The state of the thread.
  private final class Patrol: Sendable {
    let timer: Int32
    let wakeUps = Atomic<Int>(0)
    private let pulse: LoopPulse
    private let limit: UInt64
    private let onStall: @Sendable (String, Duration) -> Void
    private let isStopping = Atomic<Bool>(false)

    init(
      pulse: LoopPulse,
      limit: UInt64,
      onStall: @escaping @Sendable (String, Duration) -> Void
    ) throws(OperationsError) {
      self.pulse = pulse
      self.limit = limit
      self.onStall = onStall
      timer = timerfd_create(CLOCK_MONOTONIC, Int32(TFD_CLOEXEC))
      guard timer >= 0 else { throw OperationsError(call: "timerfd_create", code: errno) }
    }

    deinit { close(timer) }

    func stop() {
      isStopping.store(true, ordering: .releasing)
      LoopPulse.set(timer, to: 0)
    }

    func run() {
      var reported: UInt64 = 0
      var expirations: UInt64 = 0
      while true {
        _ = unsafe read(timer, &expirations, 8)
        if isStopping.load(ordering: .acquiring) { return }
        wakeUps.add(1, ordering: .relaxed)
        guard let reading = pulse.read() else { continue }
        let elapsed = EventLoop.now().nanoseconds / 1_000_000 &- reading.start
        guard elapsed >= limit else {
          pulse.look(again: reading)
          continue
        }
        // The loop's next event sets the timer again.
        guard reading.start != reported else { continue }
        reported = reading.start
        onStall(reading.name, .milliseconds(Int64(clamping: elapsed)))
      }
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc
package import LastOut

/// A timer of an event loop, armed with absolute deadlines on the monotonic clock.
package final class LoopTimer {
  /// `nil` once cancelled.
  private var slot: Int?
  private let set: TimerSet

  init(set: TimerSet, phase: LoopPhase, handler: @escaping () -> Void) {
    self.set = set
    slot = set.add(handler, phase)
  }

  deinit {
    cancel()
  }

  /// Fires once at `deadline`, replacing any earlier arming; `nil` disarms.
  ///
  /// A deadline that has passed fires in the loop's next batch. Arming makes no system call: the
  /// loop reads the earliest deadline before it sleeps.
  package func arm(at deadline: Moment?) {
    guard let slot else { return }
    set.arm(slot, at: deadline)
  }

  /// Cancels the timer and releases the handler.
  package func cancel() {
    guard let slot else { return }
    self.slot = nil
    set.remove(slot)
  }
}

/// All timers of one loop, over one timer descriptor with absolute CLOCK_MONOTONIC deadlines.
///
/// A loop has about ten timers, so a linear search finds the earliest.
final class TimerSet {
  /// By slot, in nanoseconds; `notArmed` where there is none.
  private var deadlines: [UInt64] = []
  /// By slot; `nil` where the slot is free.
  private var handlers: [(() -> Void)?] = []
  private var phases: [LoopPhase] = []
  private unowned let loop: EventLoop
  private let descriptor: Int32
  private var watch: IOWatch?
  /// The deadline that the descriptor is set to.
  ///
  /// It is never moved back: one spare wake-up costs less than a system call for each deadline that
  /// moves back.
  private var programmed: UInt64?
  private static let notArmed = UInt64.max

  init(loop: EventLoop) throws(OperationsError) {
    self.loop = loop
    descriptor = timerfd_create(
      CLOCK_MONOTONIC,
      Int32(TFD_CLOEXEC | TFD_NONBLOCK)
    )
    guard descriptor >= 0 else { throw OperationsError(call: "timerfd_create", code: errno) }
    watch = try loop.watch(descriptor, for: .read, named: "timers") { [unowned self] _ in fire() }
  }

  deinit {
    Glibc.close(descriptor)
  }

  /// Cancels all timers when their loop ends; handlers that retain timers would form cycles.
  func close() {
    watch?.cancel()
    watch = nil
    let handlers = handlers
    self.handlers = []
    withExtendedLifetime(handlers) {}
  }

  func add(_ handler: @escaping () -> Void, _ phase: LoopPhase) -> Int {
    precondition(watch != nil, "A timer is made while its loop lives.")
    if let slot = handlers.firstIndex(where: { $0 == nil }) {
      handlers[slot] = handler
      phases[slot] = phase
      return slot
    }
    handlers.append(handler)
    phases.append(phase)
    deadlines.append(Self.notArmed)
    return handlers.count - 1
  }

  func remove(_ slot: Int) {
    guard watch != nil else { return }
    deadlines[slot] = Self.notArmed
    let handler = handlers[slot]
    handlers[slot] = nil
    // Released only now: its captures may cancel another timer of this set.
    withExtendedLifetime(handler) {}
  }

  func arm(_ slot: Int, at deadline: Moment?) {
    guard watch != nil else { return }
    deadlines[slot] = deadline?.nanoseconds ?? Self.notArmed
  }

  /// The deadline of the next timer.
  var earliest: Moment? {
    guard let deadline = deadlines.min(), deadline != Self.notArmed else { return nil }
    return Moment(nanoseconds: deadline)
  }

  /// Sets the descriptor to the earliest deadline; called before the loop sleeps.
  func program() {
    guard let earliest = earliest?.nanoseconds else { return }
    if let programmed, programmed <= earliest { return }
    programmed = earliest
    // Zero would disarm.
    let nanoseconds = max(earliest, 1)
    var setting = itimerspec()
    setting.it_value.tv_sec = Int(clamping: nanoseconds / 1_000_000_000)
    setting.it_value.tv_nsec = Int(nanoseconds % 1_000_000_000)
    let code = unsafe timerfd_settime(
      descriptor,
      Int32(TFD_TIMER_ABSTIME),
      &setting,
      nil
    )
    precondition(code == 0, "A timer descriptor takes any absolute deadline.")
  }

  private func fire() {
    var expirations: UInt64 = 0
    _ = unsafe read(descriptor, &expirations, 8)
    programmed = nil
    let now = EventLoop.now().nanoseconds
    let due = deadlines.indices.filter { deadlines[$0] <= now }
      .sorted { deadlines[$0] < deadlines[$1] }
    // A handler may re-arm, cancel or replace any of these: check again before each call.
    for slot in due where deadlines[slot] <= now {
      deadlines[slot] = Self.notArmed
      loop.enter(phases[slot])
      handlers[slot]?()
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc
package import LastOut
import Synchronization

/// An event loop over libuv: sockets, timers, signals, and wake-ups from other threads.
///
/// It belongs to the thread that runs it; only ``Waker`` is thread safe. Handlers run on that
/// thread, one at a time, never inside a call to the loop. A handler may cancel any watch or timer,
/// its own included, and create new ones. The loop sleeps without a time limit while nothing is
/// due.
@safe package final class EventLoop {
  /// Called after every batch of events, before the loop sleeps, and before the first sleep.
  ///
  /// Use it for work that a batch defers.
  package var afterBatch: (() -> Void)?

  /// The libuv loop; freed in `deinit` after every handle was closed.
  let pointer: UnsafeMutablePointer<uv_loop_t>
  /// The current phase of the loop, for a ``LoopWatchdog``.
  let pulse = LoopPulse()
  private let afterBatchPhase: LoopPhase
  /// Every timer of this loop, over one timer descriptor.
  private var timers: TimerSet?
  private var coalescing = InterruptCoalescing()
  /// Whether work waits for the next event, so that the loop must not rest before polling.
  package var isHurried = false
  private var batchEnds: [BatchEnd] = []
  /// Starts another batch when the end of one leaves work.
  private var continuation: LoopTimer?
  /// How many times one batch may end.
  private static let mostEnds = 8

  /// Creates the loop.
  ///
  /// - Throws: If the process is out of descriptors.
  package init() throws(OperationsError) {
    let fresh = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)
    let code = unsafe uv_loop_init(fresh)
    guard code == 0 else {
      unsafe fresh.deallocate()
      throw OperationsError(call: "uv_loop_init", libuv: code)
    }
    unsafe pointer = fresh
    unsafe settle_uv_measure_idle(fresh)
    afterBatchPhase = pulse.phase("after the batch")
    timers = try TimerSet(loop: self)
    continuation = try makeTimer(named: "the rest of a batch") {}
    // The loop's own handle refers to the loop without retaining it.
    let this = unsafe Unmanaged.passUnretained(self).toOpaque()
    _ = try unsafe LoopHandle.make(uv_prepare_t.self, data: nil) {
      (handle) throws(OperationsError) in
      unsafe uv_prepare_init(fresh, handle)
      unsafe handle.pointee.data = this
      unsafe uv_prepare_start(handle) { handle in
        guard let data = unsafe handle?.pointee.data else { return }
        unsafe Unmanaged<EventLoop>.fromOpaque(data).takeUnretainedValue().endBatch()
      }
    }
  }

  deinit {
    timers?.close()
    unsafe LoopHandle.closeAll(of: pointer)
    // Runs the close callbacks; nothing can block here.
    while unsafe uv_run(pointer, UV_RUN_NOWAIT) != 0 {}
    unsafe uv_loop_close(pointer)
    unsafe pointer.deallocate()
  }

  /// Reads the monotonic clock (CLOCK_MONOTONIC, never the coarse one).
  package static func now() -> Moment {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return Moment(
      nanoseconds: UInt64(truncatingIfNeeded: time.tv_sec) &* 1_000_000_000
        &+ UInt64(truncatingIfNeeded: time.tv_nsec)
    )
  }

  /// Handles events until ``stop()``.
  package func run() {
    unsafe uv_run(pointer, UV_RUN_DEFAULT)
    _ = runBatchEnds()  // The last batch was not followed by a sleep.
  }

  /// Makes ``run()`` return after the current batch; only on the loop's thread.
  package func stop() {
    unsafe uv_stop(pointer)
  }

  /// Creates a named phase of the loop; see ``enter(_:)``.
  package func phase(_ name: String) -> LoopPhase { pulse.phase(name) }

  /// Sets the phase of the running handler; costs an atomic store.
  package func enter(_ phase: LoopPhase) { pulse.enter(phase, batch: unsafe uv_now(pointer)) }

  /// Watches a file descriptor.
  ///
  /// `name` is shown when the handler takes too long. The watch must be cancelled before the
  /// descriptor is closed. One watch per descriptor. The loop keeps the watch alive until it is
  /// cancelled.
  package func watch(
    _ descriptor: Int32,
    for interest: IOInterest,
    named name: String = "a descriptor",
    handler: @escaping (IOInterest) -> Void
  ) throws(OperationsError) -> IOWatch {
    try IOWatch(
      loop: self,
      descriptor: descriptor,
      interest: interest,
      phase: pulse.phase(name),
      handler: handler
    )
  }

  /// Creates a timer with absolute deadlines (timerfd: sub-millisecond, never early).
  ///
  /// `name` is shown when the handler takes too long.
  package func makeTimer(
    named name: String = "a timer",
    _ handler: @escaping () -> Void
  ) throws(OperationsError) -> LoopTimer {
    guard let timers else { preconditionFailure("The loop has no timers before its init ended.") }
    return LoopTimer(set: timers, phase: pulse.phase(name), handler: handler)
  }

  /// Runs `handler` on each delivery of a signal, on the loop's thread, as long as the loop lives.
  package func onSignal(_ number: Int32, handler: @escaping () -> Void) throws(OperationsError) {
    try SignalWatch.start(loop: self, number: number, handler: handler)
  }

  /// Creates a wake-up for other threads; several before the loop handles them count as one.
  ///
  /// `name` is shown when the handler takes too long.
  package func makeWaker(
    named name: String = "a wake-up",
    _ handler: @escaping () -> Void
  ) throws(OperationsError) -> Waker {
    let waker = try Waker()
    _ = try watch(waker, named: name, handler: handler)
    return waker
  }

  /// Runs `handler` after each ``Waker/wake()``, until the watch is cancelled.
  package func watch(
    _ waker: Waker,
    named name: String = "a wake-up",
    handler: @escaping () -> Void
  ) throws(OperationsError) -> IOWatch {
    try watch(waker.descriptor, for: .read, named: name) { _ in
      waker.acknowledge()
      handler()
    }
  }

  /// Calls `handler` at the end of each batch, after ``afterBatch``, and when ``run()`` returns.
  ///
  /// It returns whether work is left; then ``afterBatch`` and `handler` are called again.
  package func atBatchEnd(_ handler: @escaping () -> Bool) -> BatchEnd {
    let end = BatchEnd(handler)
    batchEnds.append(end)
    return end
  }

  private func endBatch() {
    enter(afterBatchPhase)
    var ends = 1
    afterBatch?()
    while runBatchEnds() {
      guard ends < Self.mostEnds else {
        continuation?.arm(at: .zero)
        break
      }
      ends += 1
      afterBatch?()
    }
    timers?.program()
    pulse.sleep()
    rest()
  }

  /// Rests before polling if several events are likely to arrive meanwhile.
  private func rest() {
    let now = Self.now()
    let slept = Duration.nanoseconds(Int64(clamping: unsafe uv_metrics_idle_time(pointer)))
    let next = timers?.earliest
    guard coalescing.rests(at: now, slept: slept, before: next, isHurried: isHurried) else {
      return coalescing.looks(at: now)
    }
    var pause = timespec(tv_sec: 0, tv_nsec: Int(InterruptCoalescing.rest / .nanoseconds(1)))
    unsafe nanosleep(&pause, nil)
    coalescing.looks(at: Self.now())
  }

  private func runBatchEnds() -> Bool {
    var isMoreLeft = false
    var isAnyCancelled = false
    for end in batchEnds {
      if end.isCancelled { isAnyCancelled = true } else if end.run() { isMoreLeft = true }
    }
    if isAnyCancelled { batchEnds.removeAll { $0.isCancelled } }
    return isMoreLeft
  }
}

/// Calls a handler on the loop's thread for each delivery of a signal.
final class SignalWatch: LoopResource {
  private var handler: (() -> Void)?
  private let pulse: LoopPulse
  private let phase: LoopPhase

  private init(pulse: LoopPulse, phase: LoopPhase, handler: @escaping () -> Void) {
    self.pulse = pulse
    self.phase = phase
    self.handler = handler
  }

  static func start(
    loop: EventLoop,
    number: Int32,
    handler: @escaping () -> Void
  ) throws(OperationsError) {
    let watch = SignalWatch(
      pulse: loop.pulse,
      phase: loop.pulse.phase("signal \(number)"),
      handler: handler
    )
    let handle = try unsafe LoopHandle.make(uv_signal_t.self, data: watch) {
      (handle) throws(OperationsError) in
      let code = unsafe uv_signal_init(loop.pointer, handle)
      guard code == 0 else { throw OperationsError(call: "uv_signal_init", libuv: code) }
    }
    let code = unsafe uv_signal_start(
      handle,
      { handle, _ in
        guard let handle = unsafe handle, let data = unsafe handle.pointee.data else { return }
        unsafe Unmanaged<SignalWatch>.fromOpaque(data).takeUnretainedValue()
          .deliver(batch: uv_now(handle.pointee.loop))
      },
      number
    )
    guard code == 0 else {
      unsafe LoopHandle.close(handle)
      throw OperationsError(call: "uv_signal_start", libuv: code)
    }
  }

  private func deliver(batch start: UInt64) {
    pulse.enter(phase, batch: start)
    handler?()
  }

  func detach() {
    handler = nil
  }
}

/// A handler for the end of each batch of events, such as one that sends packets; active until it
/// is cancelled.
package final class BatchEnd {
  /// Returns whether work is left; `nil` once cancelled.
  private var handler: (() -> Bool)?

  init(_ handler: @escaping () -> Bool) {
    self.handler = handler
  }

  /// Cancels and releases the handler.
  package func cancel() { handler = nil }

  var isCancelled: Bool { handler == nil }

  func run() -> Bool { handler?() ?? false }
}

/// A failed system call, and the reason.
package struct OperationsError: Error, Hashable, Sendable, CustomStringConvertible {
  package let call: String
  package let code: Int32
  package let reason: String
  package init(call: String, code: Int32, reason: String) {
    self.call = call
    self.code = code
    self.reason = reason
  }

  /// Creates an error from an error number.
  package init(call: String, code: Int32) {
    self.init(call: call, code: code, reason: unsafe String(cString: strerror(code)))
  }

  /// Creates an error from a negative error number of libuv.
  init(call: String, libuv code: Int32) {
    self.init(call: call, code: -code, reason: unsafe String(cString: uv_strerror(code)))
  }

  package var description: String { "\(call): \(reason)" }
}

/// Wakes an event loop from another thread.
///
/// The descriptor stays open until the waker is released, so a wake-up after the end of the loop is
/// harmless.
package final class Waker: Sendable {
  let descriptor: Int32
  /// Whether a wake-up is sent that the loop has not handled.
  private let isPending = Atomic<Bool>(false)

  /// Creates a waker for a loop to watch.
  package init() throws(OperationsError) {
    descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    guard descriptor >= 0 else { throw OperationsError(call: "eventfd", code: errno) }
  }

  deinit {
    close(descriptor)
  }

  /// Wakes the loop; from any thread.
  ///
  /// Memory writes before it are visible to the loop's handler.
  package func wake() {
    guard !isPending.exchange(true, ordering: .acquiringAndReleasing) else { return }
    eventfd_write(descriptor, 1)
  }

  func acknowledge() {
    var count: eventfd_t = 0
    unsafe eventfd_read(descriptor, &count)
    _ = isPending.exchange(false, ordering: .acquiringAndReleasing)
  }
}

/// Decides when a loop rests before polling, so that each poll returns several events.
///
/// A broker on the same machine sends messages one by one, and a fast loop wakes up for each: the
/// system calls for a message then cost more than the message. Network cards have the same problem
/// and coalesce interrupts. While the last turns were short, and together took longer than the
/// sleep between them, the loop waits a tenth of a millisecond before each poll. It does not wait
/// after a longer sleep, after long turns, before a due timer, or while work waits for the next
/// event, such as commands for room in the window.
struct InterruptCoalescing: Hashable, Sendable {
  /// How long one rest lasts; the kernel adds about as much.
  static let rest = Duration.microseconds(60)
  /// A sleep of this length ends the resting at once.
  private static let longSleep = Duration.milliseconds(1)
  /// The maximum average length of a turn.
  private static let shortTurn = Duration.microseconds(100)
  /// The number of turns in the average.
  static let turns = 16

  private var isDense = false
  private var count = 0
  private var asleep = Duration.zero
  private var awake = Duration.zero
  private var lookedAt = Moment.zero
  private var slept = Duration.zero

  /// Whether to rest before polling at `now`; `total` is the total time that the loop has slept,
  /// `next` the deadline of the first timer, and `isHurried` whether work waits for the next event.
  mutating func rests(
    at now: Moment,
    slept total: Duration,
    before next: Moment?,
    isHurried: Bool
  ) -> Bool {
    let sleep = total - slept
    slept = total
    guard sleep < Self.longSleep else {
      begin(isDense: false)
      return false
    }
    asleep += sleep
    awake += lookedAt.duration(to: now) - sleep
    count += 1
    if count == Self.turns {
      begin(isDense: asleep < awake && awake < Self.shortTurn * Self.turns)
    }
    guard isDense, !isHurried else { return false }
    return next.map { $0 > now.advanced(by: Self.rest * 2) } ?? true
  }

  /// Records that the loop polls now.
  mutating func looks(at now: Moment) { lookedAt = now }

  private mutating func begin(isDense: Bool) {
    self.isDense = isDense
    (count, asleep, awake) = (0, .zero, .zero)
  }
}

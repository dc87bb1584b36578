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

/// Notifies the service manager at a fixed period that the event loop is alive.
///
/// A timer of the loop sends the notifications: if the loop hangs, they stop, and systemd, with
/// `WatchdogSec=`, restarts the program.
package final class ServiceWatchdog {
  private let timer: LoopTimer

  /// Notifies at once, and then every `period` until this object is released.
  ///
  /// - Parameters:
  ///   - loop: The loop to monitor.
  ///   - period: The time between notifications; see ``period(_:)``.
  ///   - feed: Sends a notification; default: ``Notify/alive()``.
  /// - Throws: The errors of ``EventLoop/makeTimer(named:_:)``.
  package init(
    _ loop: EventLoop,
    every period: Duration,
    feed: @escaping () -> Void = Notify.alive
  ) throws(OperationsError) {
    let cycle = Cycle()
    let timer = try loop.makeTimer(named: "service watchdog") {
      feed()
      cycle.timer?.arm(at: EventLoop.now().advanced(by: period))
    }
    cycle.timer = timer
    self.timer = timer
    timer.arm(at: .zero)
  }

  deinit { timer.cancel() }

  /// Gives the handler access to its timer.
  private final class Cycle {
    weak var timer: LoopTimer?
  }

  /// Half the watchdog timeout of the service manager; `nil` if there is none.
  ///
  /// `variable` looks up `WATCHDOG_USEC` and `WATCHDOG_PID`, the process that it applies to.
  package static func period(
    _ variable: (String) -> String? = { Environment[$0] }
  ) -> Duration? {
    guard let microseconds = variable("WATCHDOG_USEC").flatMap({ Int64($0) }), microseconds > 0
    else { return nil }
    if let process = variable("WATCHDOG_PID"), Int32(process) != getpid() { return nil }
    return .microseconds(max(microseconds / 2, 1))
  }
}

/// Notifies the service manager of the state of the program: one datagram to `NOTIFY_SOCKET`.
///
/// Without that variable it does nothing. It never blocks, and failures are ignored.
package enum Notify {
  /// The program is ready.
  package static func ready() { send("READY=1") }

  /// The program reloads its configuration; ``ready()`` must follow.
  package static func reloading() {
    send("RELOADING=1\nMONOTONIC_USEC=\(EventLoop.now().nanoseconds / 1000)")
  }

  /// The program is shutting down.
  package static func stopping() { send("STOPPING=1") }

  /// The program is alive, for a service manager that watches it.
  package static func alive() { send("WATCHDOG=1") }

  /// A status line for `systemctl status`.
  package static func status(_ text: String) {
    send("STATUS=" + text.map { $0.isNewline ? " " : String($0) }.joined())
  }

  /// Sends one message to the socket at `path`; a leading `@` names an abstract socket.
  ///
  /// - Returns: Whether the datagram was sent.
  @discardableResult
  package static func send(_ message: String, to path: String) -> Bool {
    var bytes = Array(path.utf8)
    var address = sockaddr_un()
    let room = MemoryLayout.size(ofValue: address.sun_path)
    guard let first = bytes.first, bytes.count < room else { return false }
    guard first == UInt8(ascii: "/") || first == UInt8(ascii: "@") else { return false }
    if first == UInt8(ascii: "@") { bytes[0] = 0 }
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
    let kind = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let descriptor = socket(AF_UNIX, kind, 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    let length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)
    let text = Array(message.utf8)
    let sent = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        unsafe sendto(descriptor, text, text.count, Int32(MSG_NOSIGNAL), pointer, length)
      }
    }
    return sent == text.count
  }

  private static func send(_ message: String) {
    guard let path = Environment["NOTIFY_SOCKET"] else { return }
    send(message, to: path)
  }
}

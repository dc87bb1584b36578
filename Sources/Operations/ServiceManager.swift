// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc
import LastOut

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

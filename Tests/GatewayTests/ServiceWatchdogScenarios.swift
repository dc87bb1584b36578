// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import TestBroker
import Testing

/// The service manager is notified that the gateway is alive.
@Suite(.blocking) struct ServiceWatchdogScenarios {
  /// A datagram socket such as the service manager's, closed when it goes.
  private final class Manager {
    private let descriptor: Int32

    init(_ path: String) throws {
      descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
      let size = socklen_t(MemoryLayout<sockaddr_un>.size)
      let code = unsafe withUnsafePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          unsafe bind(descriptor, $0, size)
        }
      }
      guard code == 0 else { throw GatewayProcess.Failure(description: "bind: \(errno)") }
    }

    deinit { close(descriptor) }

    /// The next message; `nil` if none comes in time.
    func next(within limit: Duration) -> String? {
      guard Wait.forInput(of: descriptor, within: limit) else { return nil }
      var bytes = [UInt8](repeating: 0, count: 1024)
      let count = unsafe recv(descriptor, &bytes, bytes.count, 0)
      return count >= 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }
  }

  @Test func `with WATCHDOG_USEC the gateway reports that it is alive, until it hangs`() throws {
    let bench = try Bench(devices: DeviceText.lamp())
    let manager = try Manager(bench.folder + "/n.sock")
    let start = EventLoop.now()
    try bench.launchGateway(
      environment: ["NOTIFY_SOCKET": bench.folder + "/n.sock", "WATCHDOG_USEC": "400000"]
    )
    #expect(manager.next(within: .patience) == "READY=1")
    // At once, and then twice in each 400 ms.
    #expect(manager.next(within: .patience) == "WATCHDOG=1")
    for _ in 0..<3 { #expect(manager.next(within: .patience) == "WATCHDOG=1") }
    #expect(start.duration(to: EventLoop.now()) >= .milliseconds(600))
    let gateway = try bench.running()
    gateway.signal(SIGSTOP)
    // Some may be on their way.
    for _ in 0..<20 where manager.next(within: .milliseconds(300)) == nil { break }
    #expect(manager.next(within: .milliseconds(500)) == nil)
    gateway.signal(SIGCONT)
    #expect(manager.next(within: .patience) == "WATCHDOG=1")
    gateway.signal(SIGTERM)
    #expect(gateway.waitForExit() == 0)
    var last: String?
    while let message = manager.next(within: .zero) { last = message }
    #expect(last == "STOPPING=1")
  }

  @Test func `without WATCHDOG_USEC only readiness and the end are reported`() throws {
    let bench = try Bench(devices: DeviceText.lamp())
    let manager = try Manager(bench.folder + "/n.sock")
    try bench.launchGateway(environment: ["NOTIFY_SOCKET": bench.folder + "/n.sock"])
    #expect(manager.next(within: .patience) == "READY=1")
    let gateway = try bench.running()
    gateway.signal(SIGTERM)
    #expect(gateway.waitForExit() == 0)
    #expect(manager.next(within: .patience) == "STOPPING=1")
    #expect(manager.next(within: .zero) == nil)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// TCP ports on 127.0.0.1.
///
/// The kernel chooses every port at the moment it is bound, so no port is free in between. A server
/// of another process gets its port by ``PortReservation``.
package enum LoopbackPort {
  /// A socket that listens on `port`, which the caller closes; with 0 the kernel chooses the port.
  package static func listener(
    on port: Int = 0,
    backlog: Int32 = 64
  ) throws -> (descriptor: Int32, port: Int) {
    let bound = try bind(port)
    guard listen(bound.descriptor, backlog) == 0 else {
      let code = errno
      close(bound.descriptor)
      throw PrivateBrokerError("listen: \(code)")
    }
    return bound
  }

  /// A socket that is bound to `port` and shares it with servers that set `SO_REUSEADDR`; with 0
  /// the kernel chooses the port.
  static func bind(_ port: Int) throws -> (descriptor: Int32, port: Int) {
    guard let descriptor = socket() else { throw PrivateBrokerError("socket: \(errno)") }
    var on: Int32 = 1
    unsafe setsockopt(
      descriptor,
      SOL_SOCKET,
      SO_REUSEADDR,
      &on,
      socklen_t(MemoryLayout<Int32>.size)
    )
    var address = address(port: port)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    guard unsafe withSocketAddress(&address, { unsafe Glibc.bind(descriptor, $0, size) }) == 0,
      unsafe withSocketAddress(&address, { unsafe getsockname(descriptor, $0, &size) }) == 0
    else {
      let code = errno
      close(descriptor)
      throw PrivateBrokerError("bind 127.0.0.1:\(port): \(code)")
    }
    return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
  }

  /// Starts to connect the non-blocking `descriptor` to `port`.
  package static func begin(_ descriptor: Int32, to port: Int) {
    var address = address(port: port)
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = unsafe withSocketAddress(&address) { unsafe connect(descriptor, $0, size) }
  }

  /// Whether a server on `port` accepts connections.
  package static func accepts(_ port: Int) -> Bool {
    guard let descriptor = connected(to: port) else { return false }
    close(descriptor)
    return true
  }

  /// A socket connected to `port`, which the caller closes; `nil` if nobody listens.
  package static func connected(to port: Int) -> Int32? {
    guard let descriptor = socket() else { return nil }
    var address = address(port: port)
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    if unsafe withSocketAddress(&address, { unsafe connect(descriptor, $0, size) }) == 0 {
      return descriptor
    }
    close(descriptor)
    return nil
  }

  private static func socket() -> Int32? {
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = Glibc.socket(AF_INET, type, 0)
    return descriptor >= 0 ? descriptor : nil
  }

  private static func address(port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(truncatingIfNeeded: port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }

  private static func withSocketAddress<Result>(
    _ address: inout sockaddr_in,
    _ body: (UnsafeMutablePointer<sockaddr>) -> Result
  ) -> Result {
    unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0) }
    }
  }
}

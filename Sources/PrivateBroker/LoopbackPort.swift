// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// TCP ports on 127.0.0.1.
package enum LoopbackPort {
  /// A port that nobody listens on at the moment: `wish` if it is one, else any.
  package static func free(preferring wish: Int) throws -> Int {
    if let port = try? free(at: wish) { return port }
    return try free()
  }

  /// A port that nobody listens on at the moment.
  package static func free() throws -> Int { try free(at: 0) }

  private static func free(at wish: Int) throws -> Int {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw PrivateBrokerError("socket: \(errno)") }
    defer { close(descriptor) }
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    var address = address(port: wish)
    let bound = unsafe withSocketAddress(&address) { unsafe bind(descriptor, $0, size) }
    guard bound == 0 else { throw PrivateBrokerError("bind: \(errno)") }
    let named = unsafe withSocketAddress(&address) { unsafe getsockname(descriptor, $0, &size) }
    guard named == 0 else { throw PrivateBrokerError("getsockname: \(errno)") }
    return Int(UInt16(bigEndian: address.sin_port))
  }

  /// A socket that listens on a port of the system's choice, which the caller closes.
  package static func listener(backlog: Int32 = 64) throws -> (descriptor: Int32, port: Int) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw PrivateBrokerError("socket: \(errno)") }
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    var address = address(port: 0)
    guard unsafe withSocketAddress(&address, { unsafe bind(descriptor, $0, size) }) == 0,
      listen(descriptor, backlog) == 0,
      unsafe withSocketAddress(&address, { unsafe getsockname(descriptor, $0, &size) }) == 0
    else {
      close(descriptor)
      throw PrivateBrokerError("listen: \(errno)")
    }
    return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
  }

  /// Begins to connect `descriptor`, which does not block, to `port`.
  package static func begin(_ descriptor: Int32, to port: Int) {
    var address = address(port: port)
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = unsafe withSocketAddress(&address) { unsafe connect(descriptor, $0, size) }
  }

  /// Whether something takes connections on `port`.
  package static func accepts(_ port: Int) -> Bool {
    guard let descriptor = connected(to: port) else { return false }
    close(descriptor)
    return true
  }

  /// A socket connected to `port`, which the caller closes; `nil` if nobody listens.
  package static func connected(to port: Int) -> Int32? {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return nil }
    var address = address(port: port)
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    if unsafe withSocketAddress(&address, { unsafe connect(descriptor, $0, size) }) == 0 {
      return descriptor
    }
    close(descriptor)
    return nil
  }

  static func address(port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(truncatingIfNeeded: port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }

  static func withSocketAddress<Result>(
    _ address: inout sockaddr_in,
    _ body: (UnsafeMutablePointer<sockaddr>) -> Result
  ) -> Result {
    unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0) }
    }
  }
}

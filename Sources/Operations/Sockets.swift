// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc

/// Accepts connections from listening sockets, and refuses them when no file descriptors are left.
///
/// It keeps a spare descriptor. Without one, a process that is out of descriptors could neither
/// accept nor refuse a waiting client, and the loop would report the socket endlessly.
package struct ConnectionAcceptor: ~Copyable {
  /// The result of one call of ``accept(from:)``.
  package enum Outcome {
    /// A connection's descriptor, which is non-blocking and not inherited by child processes.
    case connection(Int32)
    /// No descriptor was left; the client that waited longest was disconnected.
    case outOfDescriptors
    /// No client is waiting.
    case none
  }

  private var spare: Int32

  package init() { spare = Self.openSpare() }

  deinit { if spare >= 0 { close(spare) } }

  /// Accepts the connection that has waited longest on the non-blocking `listener`.
  package mutating func accept(from listener: Int32) -> Outcome {
    let descriptor = settle_accept(listener)
    if descriptor >= 0 { return .connection(descriptor) }
    guard errno == EMFILE || errno == ENFILE else { return .none }
    disconnectFirst(of: listener)
    return .outOfDescriptors
  }

  private mutating func disconnectFirst(of listener: Int32) {
    if spare >= 0 { close(spare) }
    let descriptor = settle_accept(listener)
    if descriptor >= 0 { close(descriptor) }
    spare = Self.openSpare()
  }

  private static func openSpare() -> Int32 { unsafe open("/dev/null", O_RDONLY | O_CLOEXEC) }
}

/// Connections outside the event loop, for a question that a thread of its own may wait for.
package enum BlockingSocket {
  /// A socket that is connected to the first address that accepts; the caller closes it.
  ///
  /// Blocks: to resolve the name, and for up to `seconds` for each address. Reading and writing wait
  /// as long at most.
  package static func connected(_ host: String, _ port: Int, seconds: Int) -> Int32? {
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var first: UnsafeMutablePointer<addrinfo>?
    guard unsafe getaddrinfo(host, String(port), &hints, &first) == 0 else { return nil }
    defer { unsafe freeaddrinfo(first) }
    var next = unsafe first
    while let address = unsafe next?.pointee {
      unsafe next = address.ai_next
      let kind = unsafe address.ai_socktype | Int32(SOCK_CLOEXEC.rawValue)
      let descriptor = unsafe socket(address.ai_family, kind, address.ai_protocol)
      guard descriptor >= 0 else { continue }
      var limit = timeval(tv_sec: seconds, tv_usec: 0)
      let size = socklen_t(MemoryLayout<timeval>.size)
      for option in [SO_SNDTIMEO, SO_RCVTIMEO] {
        unsafe setsockopt(descriptor, SOL_SOCKET, option, &limit, size)
      }
      if unsafe connect(descriptor, address.ai_addr, address.ai_addrlen) == 0 { return descriptor }
      close(descriptor)
    }
    return nil
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

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

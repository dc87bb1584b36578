// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Finds the addresses of a host.
package enum HostAddresses {
  /// All addresses of `host` in numbers, in the system's order; blocks.
  package static func resolve(_ host: String) throws(UnresolvedName) -> [String] {
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var first: UnsafeMutablePointer<addrinfo>?
    let code = unsafe getaddrinfo(host, nil, &hints, &first)
    guard code == 0 else {
      throw UnresolvedName(reason: unsafe String(cString: gai_strerror(code)))
    }
    defer { unsafe freeaddrinfo(first) }
    var addresses: [String] = []
    var next = unsafe first
    while let entry = unsafe next?.pointee {
      unsafe next = entry.ai_next
      var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
      guard
        unsafe getnameinfo(
          entry.ai_addr,
          entry.ai_addrlen,
          &text,
          socklen_t(text.count),
          nil,
          0,
          NI_NUMERICHOST
        ) == 0
      else { continue }
      let end = text.firstIndex(of: 0) ?? text.endIndex
      let address = String(decoding: text[..<end].map(UInt8.init(bitPattern:)), as: UTF8.self)
      if !addresses.contains(address) { addresses.append(address) }
    }
    return addresses
  }
}

/// A host's name that has no address, with the resolver's reason.
package struct UnresolvedName: Error, Hashable, Sendable {
  package let reason: String
  package init(reason: String) { self.reason = reason }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations
import Testing

@testable import HTTP

@Suite struct ListenerAddressTests {
  /// The sockets for a name with these addresses.
  private func sockets(_ addresses: [String]) throws(OperationsError) -> [Int32] {
    var first: UnsafeMutablePointer<addrinfo>?
    for address in addresses.reversed() {
      var hints = unsafe addrinfo()
      unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
      var entry: UnsafeMutablePointer<addrinfo>?
      guard unsafe getaddrinfo(address, "0", &hints, &entry) == 0, let entry = unsafe entry else {
        continue
      }
      unsafe entry.pointee.ai_next = first
      unsafe first = entry
    }
    guard let list = unsafe first else { return [] }
    defer { unsafe freeaddrinfo(list) }
    return try unsafe HTTPListener.sockets(for: list, "name:0", loopbackOnly: false)
  }

  /// 203.0.113.0/24 and 198.51.100.0/24 are reserved for documentation.
  @Test func `an address that this machine does not have keeps it from no other`() throws {
    let bound = try sockets(["203.0.113.77", "127.0.0.1"])
    defer { for socket in bound { close(socket) } }
    #expect(bound.count == 1)
    #expect(bound.allSatisfy { HTTPListener.boundAddress(of: $0).hasPrefix("127.0.0.1:") })
  }

  @Test func `a name none of whose addresses this machine has is refused`() {
    #expect(throws: OperationsError.self) { try sockets(["203.0.113.77", "198.51.100.77"]) }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The peers whose requests need no token, and whose word about their client counts: proxies that
/// know who may come.
package struct TrustedPeers: Hashable, Sendable {
  /// The first `bits` of an address.
  private struct Network: Hashable, Sendable {
    /// 4 bytes of IPv4, or 16 of IPv6.
    var address: [UInt8]
    var bits: Int

    func contains(_ other: [UInt8]) -> Bool {
      guard other.count == address.count else { return false }
      for (place, byte) in address.enumerated() {
        let left = bits - 8 * place
        guard left > 0 else { break }
        let mask = UInt8(truncatingIfNeeded: left >= 8 ? 0xFF : 0xFF << (8 - left))
        guard (byte ^ other[place]) & mask == 0 else { return false }
      }
      return true
    }
  }

  private var networks: [Network] = []
  private var includesUnix = false

  /// Whether a peer is one of them: an address, or `unix` for a Unix socket.
  package func contains(_ peer: String) -> Bool {
    if peer == Self.unix { return includesUnix }
    guard !networks.isEmpty, let address = Self.address(peer) else { return false }
    return networks.contains { $0.contains(address) }
  }

  /// Adds an address, a network such as `10.1.0.0/16`, or `unix`.
  ///
  /// - Returns: Whether it is one of these.
  mutating func insert(_ text: String) -> Bool {
    if text == Self.unix {
      includesUnix = true
      return true
    }
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let first = parts.first, let address = Self.address(String(first)) else { return false }
    var bits = 8 * address.count
    if parts.count > 1 {
      guard let given = Int(parts[1]), (0...bits).contains(given), parts[1].utf8.first != 0x2B
      else { return false }
      bits = given
    }
    networks.append(Network(address: address, bits: bits))
    return true
  }

  private static let unix = "unix"

  /// The bytes of an address; an IPv4 address that is mapped into IPv6 is one of IPv4.
  private static func address(_ text: String) -> [UInt8]? {
    let bare = String(text.prefix { $0 != "%" })
    var four = in_addr()
    if unsafe inet_pton(AF_INET, bare, &four) == 1 {
      return unsafe withUnsafeBytes(of: four) { unsafe Array($0) }
    }
    var sixteen = in6_addr()
    guard unsafe inet_pton(AF_INET6, bare, &sixteen) == 1 else { return nil }
    let bytes = unsafe withUnsafeBytes(of: sixteen) { unsafe Array($0) }
    let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
    return bytes.starts(with: mapped) ? Array(bytes[12...]) : bytes
  }
}

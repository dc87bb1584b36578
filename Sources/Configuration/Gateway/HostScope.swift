// Settle
// SPDX-License-Identifier: Apache-2.0

/// The network that a host belongs to, judged by its name or address without a lookup.
enum HostScope: Equatable {
  case loopback
  /// A private address, or a name that only a local network resolves.
  case privateNetwork
  case publicNetwork

  init(_ host: String) {
    let name = host.lowercased()
    if let bytes = Self.ipv4(name) {
      self = Self.scope(bytes)
    } else if name.contains(":") {
      self = Self.scope(ipv6: name)
    } else if name == "localhost" || name.hasSuffix(".localhost") {
      self = .loopback
    } else {
      let local = [".local", ".lan", ".home", ".home.arpa", ".internal", ".localdomain"]
      let isLocal = !name.contains(".") || local.contains { name.hasSuffix($0) }
      self = isLocal ? .privateNetwork : .publicNetwork
    }
  }

  private static func ipv4(_ name: String) -> [UInt8]? {
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 4 else { return nil }
    let bytes = parts.compactMap { part in
      part.utf8.allSatisfy { (0x30...0x39).contains($0) } ? UInt8(part) : nil
    }
    return bytes.count == 4 ? bytes : nil
  }

  private static func scope(_ bytes: [UInt8]) -> HostScope {
    switch (bytes[0], bytes[1]) {
    case (127, _): .loopback
    case (10, _), (172, 16...31), (192, 168), (169, 254), (100, 64...127): .privateNetwork
    default: .publicNetwork
    }
  }

  private static func scope(ipv6 name: String) -> HostScope {
    if name == "::1" || name == "0:0:0:0:0:0:0:1" { return .loopback }
    if name.hasPrefix("::ffff:"), let mapped = ipv4(String(name.dropFirst(7))) {
      return scope(mapped)
    }
    let first = name.split(separator: ":", omittingEmptySubsequences: false).first ?? ""
    guard let group = UInt16(first, radix: 16) else { return .publicNetwork }
    let isPrivate = group & 0xFE00 == 0xFC00 || group & 0xFFC0 == 0xFE80
    return isPrivate ? .privateNetwork : .publicNetwork
  }
}

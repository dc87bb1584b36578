// Settle
// SPDX-License-Identifier: Apache-2.0

/// How far away a host is, as far as its name tells.
enum HostReach: Equatable {
  case loopback
  /// A private address, or a name that only a local network knows.
  case local
  case anywhere

  init(_ host: String) {
    let name = host.lowercased()
    if let bytes = Self.ipv4(name) {
      self = Self.reach(bytes)
    } else if name.contains(":") {
      self = Self.reach(ipv6: name)
    } else if name == "localhost" || name.hasSuffix(".localhost") {
      self = .loopback
    } else {
      let local = [".local", ".lan", ".home", ".home.arpa", ".internal", ".localdomain"]
      let isLocal = !name.contains(".") || local.contains { name.hasSuffix($0) }
      self = isLocal ? .local : .anywhere
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

  private static func reach(_ bytes: [UInt8]) -> HostReach {
    switch (bytes[0], bytes[1]) {
    case (127, _): .loopback
    case (10, _), (172, 16...31), (192, 168), (169, 254), (100, 64...127): .local
    default: .anywhere
    }
  }

  private static func reach(ipv6 name: String) -> HostReach {
    if name == "::1" || name == "0:0:0:0:0:0:0:1" { return .loopback }
    if name.hasPrefix("::ffff:"), let mapped = ipv4(String(name.dropFirst(7))) {
      return reach(mapped)
    }
    let first = name.split(separator: ":", omittingEmptySubsequences: false).first ?? ""
    guard let group = UInt16(first, radix: 16) else { return .anywhere }
    return group & 0xFE00 == 0xFC00 || group & 0xFFC0 == 0xFE80 ? .local : .anywhere
  }
}

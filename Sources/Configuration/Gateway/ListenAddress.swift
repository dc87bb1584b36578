// Settle
// SPDX-License-Identifier: Apache-2.0

/// Where HTTP may listen; with port 0 the kernel chooses the port.
enum ListenAddress {
  /// Parses an address; `nil` when it is invalid.
  static func read(_ text: String) -> HTTPConfiguration.Address? {
    if text.hasPrefix("unix:") { return .unix(path: String(text.dropFirst(5))) }
    guard let (host, port) = try? hostAndPort(text) else { return nil }
    return .tcp(host: host, port: port)
  }

  /// Whether other machines can reach an address.
  static func isBeyondThisMachine(_ address: HTTPConfiguration.Address) -> Bool {
    if case .tcp(let host, _) = address { HostScope(host) != .loopback } else { false }
  }

  /// Why `address` requires another token; `nil` when only this machine can reach it, when the token
  /// is long enough, or when trusted proxies need none and everyone else is refused.
  static func reason(
    toProtect address: HTTPConfiguration.Address,
    token: String?,
    isTrusting: Bool
  ) -> String? {
    guard case .tcp(let host, _) = address, isBeyondThisMachine(address) else { return nil }
    let place = "'\(host.prefix(60))' is beyond this machine, which needs"
    guard let token else { return isTrusting ? nil : "\(place) 'token_file' or 'trusted'" }
    guard token.utf8.count < Secrets.shortestToken else { return nil }
    return "\(place) a token of at least \(Secrets.shortestToken) characters; this one has "
      + "\(token.utf8.count) ('openssl rand -hex 16' makes a good one)"
  }

  /// Why an address is invalid; `nil` if it is valid.
  static func problem(in text: String) -> String? {
    if text.hasPrefix("unix:") {
      let path = text.dropFirst(5)
      let longest = SettingsRules.longestSocketPath
      return path.isEmpty || path.utf8.count > longest
        ? "unix: needs a path of at most \(longest) bytes" : nil
    }
    do throws(BrokerURL.Problem) {
      _ = try hostAndPort(text)
      return nil
    } catch {
      return "\(error.message); expected HOST:PORT or unix:PATH, found '\(text.prefix(60))'"
    }
  }

  private static func hostAndPort(
    _ text: String
  ) throws(BrokerURL.Problem) -> (host: String, port: Int) {
    try BrokerURL.hostAndPort(text[...], standard: nil, ports: 0...65_535)
  }
}

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

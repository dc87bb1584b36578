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

  /// Why `address` requires another token; `nil` when only this machine can reach it, or the token
  /// is long enough.
  static func reason(
    toProtect address: HTTPConfiguration.Address,
    token: String?
  ) -> String? {
    guard case .tcp(let host, _) = address, HostScope(host) != .loopback else { return nil }
    let place = "'\(host.prefix(60))' is beyond this machine, which needs"
    guard let token else { return "\(place) 'token_file'" }
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

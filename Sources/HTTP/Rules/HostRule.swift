// Settle
// SPDX-License-Identifier: Apache-2.0

/// The host names that this gateway accepts.
///
/// A page of another site can make its own name resolve to this machine, and then counts as the
/// same origin (DNS rebinding); but the name stays in the `Host` header. Addresses cannot be
/// rebound.
package struct HostRule: Hashable, Sendable {
  private let names: Set<String>

  /// Accepts `names`, without ports, beside `localhost`.
  package init(names: some Sequence<String>) {
    self.names = Set(names.map { $0.lowercased() })
  }

  /// Whether `authority`, a host with or without a port, is accepted.
  package func accepts(_ authority: String) -> Bool {
    guard let host = Self.host(of: authority)?.lowercased() else { return false }
    let bare = host.hasSuffix(".") ? String(host.dropLast()) : host
    guard bare.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"/@?#\\".utf8.contains($0) }) else {
      return false
    }
    return bare == "localhost" || bare.hasSuffix(".localhost") || names.contains(bare)
      || Self.isAddress(bare)
  }

  /// The host without its port; `nil` if it is not valid.
  static func host(of authority: String) -> String? {
    if authority.first == "[" {
      guard let end = authority.firstIndex(of: "]") else { return nil }
      let rest = authority[authority.index(after: end)...]
      guard rest.isEmpty || (rest.first == ":" && isPort(rest.dropFirst())) else { return nil }
      return String(authority[...end])
    }
    let parts = authority.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let host = parts.first, !host.isEmpty, parts.count == 1 || isPort(parts[1]) else {
      return nil
    }
    return String(host)
  }

  private static func isPort(_ text: Substring) -> Bool {
    text.utf8.count <= 5 && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
  }

  private static func isAddress(_ host: String) -> Bool {
    if host.hasPrefix("["), host.hasSuffix("]") {
      return host.contains(":")
        && host.dropFirst().dropLast().allSatisfy { $0.isHexDigit || $0 == ":" || $0 == "." }
    }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts.allSatisfy { !$0.isEmpty && UInt8($0) != nil }
  }
}

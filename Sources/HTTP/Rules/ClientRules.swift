// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

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

/// Refuses requests from pages of other sites, as far as the browser reports their origin.
package enum OriginRule {
  /// Why the origin of a request is refused; `nil` if it is allowed.
  ///
  /// Behind a trusted proxy, `client` names the host that the origin is compared with; a proxy that
  /// does not say it has judged itself.
  package static func mistake(
    in request: HTTPRequest,
    from client: ForwardedClient? = nil
  ) -> String? {
    let own = request.target.authority ?? request.value(of: "Host") ?? ""
    if let host = client == nil ? own : client?.host {
      for origin in request.values(of: "Origin")
      where !isOwn(origin, host: host, isProxied: client != nil) {
        return "the page at '\(origin.prefix(60))' is not of this gateway"
      }
    }
    // The browser hides responses from the page, and links to the panel are allowed.
    guard !["GET", "HEAD", "OPTIONS"].contains(request.method) else { return nil }
    if let site = request.value(of: "Sec-Fetch-Site"), !["same-origin", "none"].contains(site) {
      return "the request comes from a page of another site (\(site.prefix(20)))"
    }
    return nil
  }

  /// Whether a page's origin has this host; a proxy may end TLS, so its scheme says nothing.
  private static func isOwn(_ origin: String, host: String, isProxied: Bool) -> Bool {
    let lowered = origin.lowercased()
    guard let scheme = ["http://", "https://"].first(where: { lowered.hasPrefix($0) }) else {
      return false
    }
    let standard = isProxied ? [":80", ":443"] : [scheme == "http://" ? ":80" : ":443"]
    func bare(_ authority: String) -> String {
      let port = standard.first { authority.hasSuffix($0) } ?? ""
      return String(authority.dropLast(port.count))
    }
    return bare(String(lowered.dropFirst(scheme.count))) == bare(host.lowercased())
  }
}

/// What a proxy says in a request about its client; only for proxies that are trusted.
package struct ForwardedClient: Hashable, Sendable {
  /// The host that the client named, from `X-Forwarded-Host`; `nil` if the proxy does not say.
  package let host: String?
  /// The path under which the client sees this gateway, from `X-Ingress-Path` or
  /// `X-Forwarded-Prefix`, without a `/` at the end.
  package let prefix: String
  /// Who the client is, from `X-Remote-User-Display-Name` or `X-Remote-User-Name`.
  package let person: String?

  /// The longest prefix and name that are read, in bytes.
  private static let limit = 256

  package init(_ request: HTTPRequest) {
    // Proxies in a row append theirs: the first is what the browser asked for.
    host = request.value(of: "X-Forwarded-Host").flatMap { list in
      list.split(separator: ",").first.map { String($0.trimmed) }
    }
    let paths = ["X-Ingress-Path", "X-Forwarded-Prefix"].compactMap { request.value(of: $0) }
    prefix = paths.lazy.compactMap(Self.path).first ?? ""
    let names = ["X-Remote-User-Display-Name", "X-Remote-User-Name"]
      .compactMap { request.value(of: $0) }
    person = names.first { name in
      !name.isEmpty && name.utf8.count <= Self.limit
        && !name.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F }
    }
  }

  /// The address of the client: the last one in `X-Forwarded-For` that no trusted proxy has; `peer`
  /// if there is none.
  package static func address(
    in request: HTTPRequest,
    behind peer: String,
    isTrusted: (String) -> Bool
  ) -> String {
    let addresses = request.values(of: "X-Forwarded-For").flatMap { $0.split(separator: ",") }
      .map { String($0.trimmed) }
    return addresses.last { !$0.isEmpty && $0.utf8.count <= limit && !isTrusted($0) } ?? peer
  }

  /// A path of this server; `nil` for what could lead elsewhere.
  private static func path(_ text: String) -> String? {
    let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"<>\\?#".utf8.contains($0) }
    guard text.hasPrefix("/"), !text.hasPrefix("//"), isPlain, text.utf8.count <= limit else {
      return nil
    }
    return text.hasSuffix("/") ? String(text.dropLast()) : text
  }
}

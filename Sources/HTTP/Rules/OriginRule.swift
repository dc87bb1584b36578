// Settle
// SPDX-License-Identifier: Apache-2.0

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

// Settle
// SPDX-License-Identifier: Apache-2.0

/// Refuses requests from pages of other sites, as far as the browser reports their origin.
package enum OriginRule {
  /// Why the origin of a request is refused; `nil` if it is allowed.
  package static func mistake(in request: HTTPRequest) -> String? {
    let host = request.target.authority ?? request.value(of: "Host") ?? ""
    for origin in request.values(of: "Origin") where !isOwn(origin, host: host) {
      return "the page at '\(origin.prefix(60))' is not of this gateway"
    }
    // The browser hides responses from the page, and links to the panel are allowed.
    guard !["GET", "HEAD", "OPTIONS"].contains(request.method) else { return nil }
    if let site = request.value(of: "Sec-Fetch-Site"), !["same-origin", "none"].contains(site) {
      return "the request comes from a page of another site (\(site.prefix(20)))"
    }
    return nil
  }

  private static func isOwn(_ origin: String, host: String) -> Bool {
    let lowered = origin.lowercased()
    guard let scheme = ["http://", "https://"].first(where: { lowered.hasPrefix($0) }) else {
      return false
    }
    let standard = scheme == "http://" ? ":80" : ":443"
    func bare(_ authority: String) -> String {
      authority.hasSuffix(standard) ? String(authority.dropLast(standard.count)) : authority
    }
    return bare(String(lowered.dropFirst(scheme.count))) == bare(host.lowercased())
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// Keeps the pages of other sites out, as far as the browser says where they come from.
package enum OriginRule {
  /// What is wrong with where a request comes from; `nil` when nothing is.
  package static func mistake(in request: HTTPRequest) -> String? {
    let host = request.target.authority ?? request.value(of: "Host") ?? ""
    for origin in request.values(of: "Origin") where !isOwn(origin, host: host) {
      return "the page at '\(origin.prefix(60))' is not of this gateway"
    }
    // What only reads is not shown to the page, and links into the panel are welcome.
    guard !["GET", "HEAD", "OPTIONS"].contains(request.method) else { return nil }
    if let site = request.value(of: "Sec-Fetch-Site"), !["same-origin", "none"].contains(site) {
      return "another site's page asks (\(site.prefix(20)))"
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

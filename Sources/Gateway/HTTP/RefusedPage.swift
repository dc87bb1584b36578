// Settle
// SPDX-License-Identifier: Apache-2.0

import HTTP

/// A page for a person whose browser is refused the panel: what is wrong, and what to write where.
enum RefusedPage {
  /// The page in place of a problem document; `nil` for requests that no person looks at.
  ///
  /// `peer` is the address that the request came from.
  static func response(to request: HTTPRequest, _ problem: Problem, from peer: String)
    -> HTTPResponse?
  {
    guard request.method == "GET", request.target.path == [""],
      request.value(of: "Accept")?.contains("text/html") == true
    else { return nil }
    let advice = problem.code == "wrong_host" ? host(request, peer) : ""
    let text = """
      <!DOCTYPE html>
      <html lang="en"><head><meta charset="utf-8"><title>Settle: \(problem.title)</title>
      <meta name="viewport" content="width=device-width"></head><body>
      <h1>Settle did not open this page</h1>
      <p>\(escaped(problem.detail)).</p>
      \(advice)</body></html>

      """
    let headers = [
      HTTPHeader("Content-Type", "text/html; charset=utf-8"),
      HTTPHeader("Content-Security-Policy", "default-src 'none'"),
      HTTPHeader("Cache-Control", "no-store"),
    ]
    return HTTPResponse(
      status: problem.status,
      headers: headers + problem.headers,
      body: .bytes(Array(text.utf8))
    )
  }

  private static func host(_ request: HTTPRequest, _ peer: String) -> String {
    let authority = request.target.authority ?? request.value(of: "Host") ?? ""
    let name = authority.split(separator: ":").first.map(String.init) ?? ""
    return """
      <p>If this is your gateway, write one of these into the section <code>http:</code> of
      <code>settle.yaml</code> and start Settle again:</p>
      <pre>http:
        hosts: [\(escaped(name))]      # you reach Settle itself by this name</pre>
      <pre>http:
        trusted: [\(escaped(peer))]    # a proxy at this address stands before Settle, and lets in
                               # only who may control your devices</pre>

      """
  }

  private static func escaped(_ text: String) -> String {
    var escaped = ""
    for character in text {
      switch character {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      default: escaped.append(character)
      }
    }
    return escaped
  }
}

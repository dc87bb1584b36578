// Settle
// SPDX-License-Identifier: Apache-2.0

import HTTP
import Panel

/// The panel: a page and its files, the same for everybody, and no secret.
extension HTTPSurface {
  func servePanel(_ name: String?, _ exchange: HTTPExchange) throws(Problem) {
    guard let file = name.map(PanelFile.named) ?? .page else {
      throw Problem(404, "not_found", "the panel has no file of that name")
    }
    var headers = [
      // A browser may keep a copy, and asks each time whether it is current.
      HTTPHeader("Cache-Control", "no-cache"), HTTPHeader("ETag", file.tag),
      HTTPHeader("Content-Security-Policy", PanelFile.contentSecurityPolicy),
    ]
    guard !isKnown(file.tag, to: exchange.request) else {
      return answer(exchange, HTTPResponse(status: 304, headers: headers, body: .bytes([])))
    }
    headers.append(HTTPHeader("Content-Type", file.mediaType))
    answer(exchange, HTTPResponse(status: 200, headers: headers, body: .bytes(file.bytes)))
  }

  /// Whether the client has this version already.
  private func isKnown(_ tag: String, to request: HTTPRequest) -> Bool {
    request.values(of: "If-None-Match").contains { list in
      list.split(separator: ",").contains { entry in
        let bare = entry.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
        let text = String(bare)
        return text == "*" || (text.hasPrefix("W/") ? String(text.dropFirst(2)) : text) == tag
      }
    }
  }
}

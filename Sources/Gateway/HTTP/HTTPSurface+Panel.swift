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
    let isCompressed = file.isText && acceptsGzip(exchange)
    let tag = isCompressed ? "\(file.tag.dropLast())-gzip\"" : file.tag
    var headers = [
      // A browser may keep a copy, and asks each time whether it is current.
      HTTPHeader("Cache-Control", "no-cache"), HTTPHeader("ETag", tag),
      HTTPHeader("Content-Security-Policy", PanelFile.contentSecurityPolicy), Self.varies,
    ]
    guard !isKnown(tag, to: exchange.request) else {
      return answer(exchange, HTTPResponse(status: 304, headers: headers, body: .bytes([])))
    }
    headers.append(HTTPHeader("Content-Type", file.mediaType))
    if isCompressed { headers.append(Self.gzip) }
    let bytes = isCompressed ? compressed(file) : file.bytes
    answer(exchange, HTTPResponse(status: 200, headers: headers, body: .bytes(bytes)))
  }

  /// The compressed file, which is made at the first request for it.
  private func compressed(_ file: PanelFile) -> [UInt8] {
    if let bytes = compressedFiles[file.tag] { return bytes }
    let bytes = GzipWriter.best(file.bytes)
    compressedFiles[file.tag] = bytes
    return bytes
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

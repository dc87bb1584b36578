// Settle
// SPDX-License-Identifier: Apache-2.0

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
      list.split(separator: ",").first.map { String(Self.trimmed($0)) }
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
      .map { String(trimmed($0)) }
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

  private static func trimmed(_ text: Substring) -> Substring {
    let isBlank = { (character: Character) in character == " " || character == "\t" }
    var rest = text.drop(while: isBlank)
    while let last = rest.last, isBlank(last) { rest.removeLast() }
    return rest
  }
}

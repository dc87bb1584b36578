// Settle
// SPDX-License-Identifier: Apache-2.0

/// Reads a broker's address: `mqtt://host:1883`, `mqtts://host`, `unix:/path`.
enum BrokerURL {
  /// The accepted forms, for error messages.
  static let forms = "mqtt://HOST[:PORT], mqtts://HOST[:PORT] or unix:/PATH"

  /// Why an address is invalid.
  struct Problem: Error {
    let message: String
    var suggestion: String?
  }

  static func parse(_ text: String) throws(Problem) -> BrokerConfiguration.Endpoint {
    if text.hasPrefix("unix:") {
      var path = text.dropFirst(5)
      if path.hasPrefix("///") { path = path.dropFirst(2) }
      guard path.first == "/", path.utf8.count < 108, !path.utf8.contains(0) else {
        throw Problem(
          message: "a broker's socket is unix: and an absolute path of at most 107 bytes"
        )
      }
      return .unix(path: String(path))
    }
    guard let (scheme, rest) = split(text) else {
      let suggestion = text.contains("/") ? nil : "mqtt://\(text)"
      throw Problem(message: "expected \(forms)", suggestion: suggestion)
    }
    let isTLS: Bool
    switch scheme {
    case "mqtt": isTLS = false
    case "mqtts": isTLS = true
    default:
      let meant = ["tcp": "mqtt", "ssl": "mqtts", "tls": "mqtts", "http": "mqtt", "https": "mqtts"]
      throw Problem(
        message: "unknown scheme '\(scheme.prefix(20))'; expected \(forms)",
        suggestion: meant[scheme.lowercased()].map { "\($0)://\(rest)" }
      )
    }
    if rest.contains("@") {
      throw Problem(
        message: "no user or password in the address; use 'username' and 'password_file'"
      )
    }
    let authority = rest.hasSuffix("/") ? rest.dropLast() : rest[...]
    if authority.contains(where: { $0 == "/" || $0 == "?" || $0 == "#" }) {
      throw Problem(message: "an MQTT address ends after the port; expected \(forms)")
    }
    let host: String
    let port: Int
    do throws(Problem) {
      (host, port) = try hostAndPort(authority, standard: isTLS ? 8883 : 1883)
    } catch {
      throw Problem(
        message: error.message,
        suggestion: error.suggestion.map { "\(scheme)://\($0)" }
      )
    }
    return isTLS ? .tls(host: host, port: port) : .tcp(host: host, port: port)
  }

  /// Reads a host and its port.
  ///
  /// An IPv6 address needs brackets.
  static func hostAndPort(
    _ text: Substring,
    standard: Int?,
    ports: ClosedRange<Int> = 1...65_535
  ) throws(Problem) -> (host: String, port: Int) {
    var host = text
    var port: Substring?
    if text.first == "[" {
      guard let end = text.firstIndex(of: "]") else {
        throw Problem(message: "an IPv6 address ends with ']'")
      }
      host = text[text.index(after: text.startIndex)..<end]
      let rest = text[text.index(after: end)...]
      guard rest.isEmpty || rest.first == ":" else {
        throw Problem(message: "after ']' only ':' and the port may follow")
      }
      port = rest.isEmpty ? nil : rest.dropFirst()
      guard host.contains(":") else {
        throw Problem(message: "'[\(host.prefix(60))]' is not an IPv6 address")
      }
    } else if let colon = text.firstIndex(of: ":") {
      host = text[..<colon]
      port = text[text.index(after: colon)...]
      if port?.contains(":") == true {
        throw Problem(message: "an IPv6 address needs brackets", suggestion: "[\(text)]")
      }
    }
    let isHost =
      !host.isEmpty && host.utf8.count <= 253
      && host.unicodeScalars.allSatisfy { $0.value > 0x20 && $0.value != 0x7F }
    guard isHost else { throw Problem(message: "'\(host.prefix(60))' is not a host") }
    guard let digits = port else {
      guard let standard else { throw Problem(message: "the port is missing") }
      return (String(host), standard)
    }
    guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(digits),
      ports.contains(number)
    else {
      let expected = "\(ports.lowerBound) to \(ports.upperBound)"
      throw Problem(message: "'\(digits.prefix(20))' is no port; expected \(expected)")
    }
    return (String(host), number)
  }

  private static func split(_ text: String) -> (scheme: String, rest: String)? {
    let bytes = Array(text.utf8)
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon > 0,
      bytes[colon...].starts(with: "://".utf8)
    else { return nil }
    return (
      String(decoding: bytes[..<colon], as: UTF8.self),
      String(decoding: bytes[(colon + 3)...], as: UTF8.self)
    )
  }
}

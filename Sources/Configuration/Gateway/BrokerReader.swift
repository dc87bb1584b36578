// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import Glibc
import Operations
import Values

/// Reads the connection to a broker: `mqtt:`, and each entry of `brokers:`.
struct BrokerReader {
  let folder: String?
  let problems: Problems

  /// Reads a broker without its password, which ``Secrets`` provides.
  func broker(_ fields: Section, into positions: inout BrokerPositions) -> BrokerConfiguration {
    var broker = BrokerConfiguration()
    positions.url = fields["url"]?.position ?? fields.position
    readAddresses(fields, into: &broker)
    broker.username = fields.text("username")
    positions.passwordFile = fields.passwordFile(in: folder)
    if let version = fields.choice("protocol", of: ["5", "3.1.1"]) {
      broker.usesMQTT5 = version == "5"
      broker.allowsOlderVersion = false
    }
    broker.clientID = clientID(fields)
    if let keepalive = fields.duration("keepalive"), let node = fields["keepalive"] {
      if keepalive != .zero, keepalive < .seconds(5) || keepalive > .seconds(65_535) {
        problems.add(node, "keepalive", expected: "0, or 5s to 65535s")
      } else {
        broker.keepalive = keepalive
      }
    }
    broker.ca = fields.path("ca", in: folder)
    broker.certificate = fields.path("cert", in: folder)
    broker.key = fields.path("key", in: folder)
    fields.checkCertificate(
      broker.certificate,
      key: broker.key,
      usesTLS: broker.usesTLS,
      scheme: "mqtts://"
    )
    broker.allowPlaintext = fields.flag("allow_plaintext") ?? false
    return broker
  }

  /// Reads `url`: one address, or a list.
  private func readAddresses(_ fields: Section, into broker: inout BrokerConfiguration) {
    guard let node = fields["url"] else { return }
    var endpoints: [BrokerEndpoint] = []
    for element in node.elements ?? [node] {
      guard let url = element.text else {
        problems.add(element, "url", expected: BrokerURL.forms)
        continue
      }
      do throws(BrokerURL.Problem) {
        endpoints.append(try BrokerURL.parse(url))
      } catch {
        problems.add(element.position, "url: \(error.message)", suggestion: error.suggestion)
      }
    }
    if node.elements?.isEmpty == true { problems.add(node.position, "url: the list is empty") }
    broker.use(endpoints)
  }

  private func clientID(_ fields: Section) -> String? {
    guard let text = fields.text("client_id"), let node = fields["client_id"] else { return nil }
    let id = text.replaced(Self.hostPlaceholder, by: HostName.current)
    guard id.utf8.count <= 65_535, !id.unicodeScalars.contains(where: { $0.value < 0x20 }) else {
      return fields.reject(node, "client_id", expected: "text without control characters")
    }
    return id
  }

  /// The placeholder for this machine's name in `client_id`.
  private static let hostPlaceholder = "<host>"
}

/// What brokers and the servers of a cluster have in common.
extension Section {
  /// A path, resolved against `folder`.
  func path(_ key: String, in folder: String?) -> String? {
    text(key).map { FilePath.resolve($0, in: folder) }
  }

  /// The path in `password_file`, and where it stands.
  func passwordFile(in folder: String?) -> (path: String, position: SourcePosition)? {
    guard let path = path("password_file", in: folder), let node = self["password_file"] else {
      return nil
    }
    return (path, node.position)
  }

  /// Reports a certificate or a key without the other, and files that nothing uses without TLS.
  func checkCertificate(_ certificate: String?, key: String?, usesTLS: Bool, scheme: String) {
    if certificate != nil, key == nil { missing("key", "a client certificate needs its key") }
    if key != nil, certificate == nil { missing("cert", "a key needs its client certificate") }
    for name in ["ca", "cert", "key"] where !usesTLS {
      guard let node = self[name] else { continue }
      problems.add(node.position, "\(name): only \(scheme) uses certificates")
    }
  }
}

/// This machine's name.
package enum HostName {
  /// The name up to the first dot; `localhost` when the system has none.
  package static var current: String {
    var buffer = [CChar](repeating: 0, count: 256)
    guard unsafe gethostname(&buffer, buffer.count - 1) == 0 else { return "localhost" }
    let bytes = buffer.prefix { $0 != 0 && $0 != 0x2E }.map { UInt8(bitPattern: $0) }
    return bytes.isEmpty ? "localhost" : String(decoding: bytes, as: UTF8.self)
  }
}

/// Reads a broker's address: `mqtt://host:1883`, `mqtts://host`, `unix:/path`.
enum BrokerURL {
  /// The accepted forms, for error messages.
  static let forms = "mqtt://HOST[:PORT], mqtts://HOST[:PORT] or unix:/PATH"

  /// Why an address is invalid.
  struct Problem: Error {
    let message: String
    var suggestion: String?
  }

  static func parse(_ text: String) throws(Problem) -> BrokerEndpoint {
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
    guard let (scheme, rest) = split(text), !scheme.isEmpty else {
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

  /// What precedes and what follows the `://` of an address; `nil` where it has none.
  static func split(_ text: String) -> (scheme: String, rest: String)? {
    let bytes = Array(text.utf8)
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
      bytes[colon...].starts(with: "://".utf8)
    else { return nil }
    return (
      String(decoding: bytes[..<colon], as: UTF8.self),
      String(decoding: bytes[(colon + 3)...], as: UTF8.self)
    )
  }
}

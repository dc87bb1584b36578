// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Devices
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
    positions.username = fields["username"]?.position
    if let path = fields.text("password_file"), let node = fields["password_file"] {
      positions.passwordFile = (FilePath.resolve(path, in: folder), node.position)
    }
    if let version = fields.choice("protocol", of: ["5", "3.1.1"]) {
      broker.usesMQTT5 = version == "5"
      broker.allowsOlderVersion = false
    }
    broker.clientID = clientID(fields)
    if let keepalive = fields.duration("keepalive"), let node = fields["keepalive"] {
      if keepalive != .zero, keepalive < .seconds(5) || keepalive > .seconds(65_535) {
        _ = fields.reject(node, "keepalive", expected: "0, or 5s to 65535s") as String?
      } else {
        broker.keepalive = keepalive
      }
    }
    broker.ca = fields.text("ca").map { FilePath.resolve($0, in: folder) }
    broker.certificate = fields.text("cert").map { FilePath.resolve($0, in: folder) }
    broker.key = fields.text("key").map { FilePath.resolve($0, in: folder) }
    checkTLS(fields, broker)
    broker.allowPlaintext = fields.flag("allow_plaintext") ?? false
    return broker
  }

  /// Reads `url`: one address, or a list.
  private func readAddresses(_ fields: Section, into broker: inout BrokerConfiguration) {
    guard let node = fields["url"] else { return }
    var endpoints: [BrokerConfiguration.Endpoint] = []
    for element in node.elements ?? [node] {
      guard let url = element.text else {
        _ = fields.reject(element, "url", expected: BrokerURL.forms) as String?
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

  private func checkTLS(_ fields: Section, _ broker: BrokerConfiguration) {
    if broker.certificate != nil, broker.key == nil {
      fields.missing("key", "a client certificate needs its key")
    }
    if broker.key != nil, broker.certificate == nil {
      fields.missing("cert", "a key needs its client certificate")
    }
    if broker.usesTLS { return }
    for key in ["ca", "cert", "key"] {
      guard let node = fields[key] else { continue }
      problems.add(node.position, "\(key): only mqtts:// uses certificates")
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

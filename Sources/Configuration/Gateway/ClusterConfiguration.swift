// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

/// The cluster that a gateway is a member of, and the servers of its engine.
package struct ClusterConfiguration: Hashable, Sendable {
  /// The same for all members.
  package var name: String
  /// This gateway's name, unique in the cluster.
  package var member = ClusterConfiguration.standardMember
  /// Addresses such as `nats://10.0.0.1:4222`.
  package var servers: [String] = []
  package var credentialsFile: String?
  package var username: String?
  /// Never logged or described.
  package var password: String?
  package var ca: String?
  package var certificate: String?
  package var key: String?
  /// How many parts the devices are divided into; the same for the life of the cluster.
  package var partitions = 64
  /// How many servers of the engine keep each value.
  package var replicas = 3
  /// The monitoring addresses of the servers, such as `http://10.0.0.1:8222`.
  package var monitors: [String] = []

  /// This machine's name as a name of a member.
  static var standardMember: String {
    String(
      decoding: HostName.current.utf8.map { SettingsRules.isName(byte: $0) ? $0 : 0x2D },
      as: UTF8.self
    )
  }
}

/// Positions in the cluster's section.
struct ClusterPositions {
  let section: SourcePosition
  /// The first server's address, or the section.
  var servers: SourcePosition?
  /// The resolved path and its position.
  var passwordFile: (path: String, position: SourcePosition)?
}

/// Reads `cluster:`.
struct ClusterReader {
  let folder: String?
  let problems: Problems

  /// The ports of an address of a server.
  private static let port = 4222
  private static let monitorPort = 8222
  private static let forms = "nats://HOST[:PORT], or tls://HOST[:PORT] for TLS"

  func cluster(_ fields: Section) -> (cluster: ClusterConfiguration, positions: ClusterPositions) {
    var positions = ClusterPositions(section: fields.position)
    if fields["name"] == nil {
      fields.missing("name", "the cluster's name, the same for all members")
    }
    // A mistake is reported, and does not hide those that follow.
    var cluster = ClusterConfiguration(name: self.name("name", of: fields) ?? "")
    if let member = self.name("member", of: fields) { cluster.member = member }
    readServers(fields, into: &cluster, &positions)
    cluster.username = fields.text("username")
    positions.passwordFile = fields.passwordFile(in: folder)
    cluster.credentialsFile = fields.path("credentials_file", in: folder)
    cluster.ca = fields.path("ca", in: folder)
    cluster.certificate = fields.path("cert", in: folder)
    cluster.key = fields.path("key", in: folder)
    checkCredentials(fields, cluster)
    if let partitions = fields.integer("partitions", in: 1...1024) {
      cluster.partitions = partitions
    }
    if let replicas = fields.integer("replicas", in: 1...5), let node = fields["replicas"] {
      // JetStream needs a majority: two or four replicas survive no more than one or three do.
      if replicas.isMultiple(of: 2) {
        problems.add(node, "replicas", expected: "1, 3 or 5")
      }
      cluster.replicas = replicas
    }
    cluster.monitors = monitors(fields)
    return (cluster, positions)
  }

  private func monitors(_ fields: Section) -> [String] {
    let expected = "http://HOST[:PORT], the monitoring address of a server"
    return fields.each("monitor", expected: expected) { text in
      guard text.hasPrefix("http://"),
        let (host, port) = try? BrokerURL.hostAndPort(
          text.dropFirst("http://".count),
          standard: Self.monitorPort
        )
      else { return nil }
      return Self.address("http", host, port)
    }
  }

  /// Checks what depends on other sections.
  func check(_ settings: GatewayConfiguration, _ section: Section, _ positions: ClusterPositions) {
    if let journal = section["journal"] {
      problems.add(
        journal.position,
        "'journal' and 'cluster' exclude each other: a cluster keeps accepted values in its engine"
      )
    }
    if let importing = section["import"] {
      problems.add(
        importing.position,
        "'import' and 'cluster' exclude each other: all members of a cluster need the same device files"
      )
    }
    if !settings.mqtt.usesMQTT5 {
      problems.add(positions.section, "a cluster needs MQTT 5: set 'protocol: 5' in 'mqtt'")
    }
  }

  private func name(_ key: String, of fields: Section) -> String? {
    guard let text = fields.text(key), let node = fields[key] else { return nil }
    if SettingsRules.isName(text) { return text }
    return fields.reject(
      node,
      key,
      expected: "letters, digits, '-' and '_', 64 at most"
    )
  }

  private func readServers(
    _ fields: Section,
    into cluster: inout ClusterConfiguration,
    _ positions: inout ClusterPositions
  ) {
    guard let node = fields["nats"] else {
      return fields.missing("nats", "the servers, such as [nats://10.0.0.1:4222]")
    }
    positions.servers = node.position
    let elements = node.elements ?? [node]
    if elements.isEmpty { problems.add(node, "nats", expected: Self.forms) }
    for element in elements {
      guard let text = element.text else {
        problems.add(element, "nats", expected: Self.forms)
        continue
      }
      do throws(BrokerURL.Problem) {
        cluster.servers.append(try Self.server(text))
      } catch {
        problems.add(element.position, "nats: \(error.message)", suggestion: error.suggestion)
      }
    }
    let schemes = Set(cluster.servers.map { $0.prefix { $0 != ":" } })
    if schemes.count > 1 {
      problems.add(node.position, "nats: either all servers use TLS or none does")
    }
  }

  /// A server's address with its port.
  static func server(_ text: String) throws(BrokerURL.Problem) -> String {
    guard let (scheme, rest) = BrokerURL.split(text) else {
      throw BrokerURL.Problem(
        message: "expected \(forms)",
        suggestion: text.contains("/") ? nil : "nats://\(text)"
      )
    }
    guard scheme == "nats" || scheme == "tls" else {
      throw BrokerURL.Problem(message: "unknown scheme '\(scheme.prefix(20))'; expected \(forms)")
    }
    guard !rest.contains("@") else {
      throw BrokerURL.Problem(
        message: "no user or password in the address; use 'credentials_file', or 'username' and"
          + " 'password_file'"
      )
    }
    let authority = rest.hasSuffix("/") ? rest.dropLast() : rest[...]
    guard !authority.contains(where: { $0 == "/" || $0 == "?" || $0 == "#" }) else {
      throw BrokerURL.Problem(
        message: "an address of NATS ends after the port; expected \(forms)"
      )
    }
    let (host, number) = try BrokerURL.hostAndPort(authority, standard: port)
    return address(scheme, host, number)
  }

  private static func address(_ scheme: String, _ host: String, _ port: Int) -> String {
    "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
  }

  private func checkCredentials(_ fields: Section, _ cluster: ClusterConfiguration) {
    if let node = fields["credentials_file"], cluster.username != nil {
      problems.add(node.position, "'credentials_file' and 'username' exclude each other")
    }
    if fields["password_file"] != nil, cluster.username == nil {
      fields.missing("username", "a password needs a user name")
    }
    if cluster.username != nil, fields["password_file"] == nil {
      fields.missing("password_file", "a user name needs a password")
    }
    fields.checkCertificate(
      cluster.certificate,
      key: cluster.key,
      usesTLS: cluster.servers.contains { $0.hasPrefix("tls://") },
      scheme: "tls://"
    )
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// Checks that no password travels unencrypted to a public host.
enum PlaintextCheck {
  /// Reports a password without TLS: an error for a public host, a warning for a private one.
  static func check(
    _ broker: BrokerConfiguration,
    _ positions: BrokerPositions,
    file: String,
    problems: Problems
  ) {
    guard broker.password != nil else { return }
    for case .tcp(let host, _) in broker.endpoints {
      check(
        host,
        isAllowed: broker.allowPlaintext,
        encrypted: "mqtts://",
        at: positions.url ?? .whole(file),
        problems
      )
    }
  }

  /// The same for the servers of a cluster's engine.
  static func check(
    _ cluster: ClusterConfiguration?,
    _ positions: ClusterPositions,
    problems: Problems
  ) {
    guard let cluster, cluster.password != nil else { return }
    for server in cluster.servers where server.hasPrefix("nats://") {
      let authority = server.dropFirst("nats://".count)
      guard let (host, _) = try? BrokerURL.hostAndPort(authority, standard: nil) else { continue }
      check(
        host,
        isAllowed: false,
        encrypted: "tls://",
        at: positions.servers ?? positions.section,
        problems
      )
    }
  }

  private static func check(
    _ host: String,
    isAllowed: Bool,
    encrypted: String,
    at position: SourcePosition,
    _ problems: Problems
  ) {
    switch HostScope(host) {
    case .loopback: return
    case .privateNetwork:
      problems.warn(
        position,
        "the password travels unencrypted to '\(host)'; \(encrypted) would protect it"
      )
    case .publicNetwork where isAllowed:
      problems.warn(
        position,
        "the password travels unencrypted to '\(host)', as 'allow_plaintext' permits"
      )
    case .publicNetwork:
      problems.add(
        position,
        "the password would travel unencrypted to '\(host)': use \(encrypted)"
          + (encrypted == "mqtts://" ? ", or set 'allow_plaintext: true'" : "")
      )
    }
  }
}

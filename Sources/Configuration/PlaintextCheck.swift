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
    guard broker.password != nil, case .tcp(let host, _) = broker.endpoint else { return }
    let position = positions.url ?? .whole(file)
    switch HostScope(host) {
    case .loopback: return
    case .privateNetwork:
      problems.warn(
        position,
        "the password travels unencrypted to '\(host)'; mqtts:// would protect it"
      )
    case .publicNetwork where broker.allowPlaintext:
      problems.warn(
        position,
        "the password travels unencrypted to '\(host)', as 'allow_plaintext' permits"
      )
    case .publicNetwork:
      problems.add(
        position,
        "the password would travel unencrypted to '\(host)': use mqtts://, or set "
          + "'allow_plaintext: true'"
      )
    }
  }
}

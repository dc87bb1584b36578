// Settle
// SPDX-License-Identifier: Apache-2.0

/// Looks after passwords that would travel unencrypted.
enum PlaintextCheck {
  /// Refuses a password over plaintext to a public host, and warns for a private one.
  static func check(
    _ broker: BrokerConfiguration,
    _ places: BrokerPlaces,
    file: String,
    problems: Problems
  ) {
    guard broker.password != nil, case .tcp(let host, _) = broker.endpoint else { return }
    let position = places.url ?? .start(of: file)
    switch HostReach(host) {
    case .loopback: return
    case .local:
      problems.warn(
        position,
        "the password travels unencrypted to '\(host)'; mqtts:// would protect it"
      )
    case .anywhere where broker.allowPlaintext:
      problems.warn(
        position,
        "the password travels unencrypted to '\(host)', as 'allow_plaintext' permits"
      )
    case .anywhere:
      problems.add(
        position,
        "the password would travel unencrypted to '\(host)': use mqtts://, or set "
          + "'allow_plaintext: true'"
      )
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Operations

/// Decides when a broker is tried with MQTT 3.1.1 because it does not understand MQTT 5.
///
/// Some brokers refuse the version, others only close the connection. A broker that is being
/// restarted closes it too, so that counts from the second time in a row on, for each address.
/// Nothing is kept beyond a connection: the next one is tried with MQTT 5 first, as the broker may
/// have been replaced.
struct OlderProtocol: Sendable {
  /// The targets whose latest attempt ended with a closed connection.
  private var closed: Set<AddressRound.Target> = []
  private var isLogged = false

  /// Whether to try 3.1.1 after an attempt with MQTT 5 at `target` ended with `problem`.
  mutating func isDue(after problem: ConnectionProblem, at target: AddressRound.Target) -> Bool {
    if problem.trouble == .closed { return !closed.insert(target).inserted }
    closed.remove(target)
    return problem.trouble == .version
  }

  /// Records a connection; logs the first with 3.1.1.
  mutating func connected(_ target: AddressRound.Target, _ log: Logger) {
    closed.removeAll()
    guard target.isOlder, !isLogged else { return }
    isLogged = true
    log.warning(
      "The broker does not speak MQTT 5; MQTT 3.1.1 is used",
      ["broker": "\(target.endpoint)", "to_choose": "protocol: 3.1.1"]
    )
  }
}

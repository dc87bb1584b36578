// Settle
// SPDX-License-Identifier: Apache-2.0

import Operations

/// Decides when a broker is tried with MQTT 3.1.1 because it does not understand MQTT 5.
///
/// Some brokers refuse the version, others only close the connection. A broker that is being
/// restarted closes it too, so that counts from the second time in a row on. Nothing is kept beyond a
/// connection: the next one is tried with MQTT 5 first, as the broker may have been replaced.
struct OlderProtocol: Sendable {
  private var closings = 0
  private var isLogged = false

  /// Whether to try 3.1.1 after an attempt with MQTT 5 ended with `problem`.
  mutating func isDue(after problem: ConnectionProblem) -> Bool {
    closings = problem.trouble == .closed ? closings + 1 : 0
    return problem.trouble == .version || closings >= 2
  }

  /// Records a connection; logs the first with 3.1.1.
  mutating func connected(_ target: AddressRound.Target, _ log: Logger) {
    guard target.isOlder else {
      closings = 0
      return
    }
    guard !isLogged else { return }
    isLogged = true
    log.warning(
      "The broker does not speak MQTT 5; MQTT 3.1.1 is used",
      ["broker": "\(target.endpoint)", "to_choose": "protocol: 3.1.1"]
    )
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// What a ``CommandStateMachine`` is configured with beside the devices.
package struct CommandSettings: Sendable {
  /// Tokens a second and burst, by lane; a lane that is not named here has no limit.
  package var lanes: [String: (rate: Double, burst: Int)] = [:]
  /// How many keys may have a waiting value.
  package var pendingLimit = 100_000
  /// How long a step waits for the state that was requested.
  package var stepPatience: Duration = .seconds(2)
  /// What the numbers of messages count from.
  ///
  /// It differs after each start, so that a reply to an earlier process's message is recognised.
  package var firstMessage: UInt64 = 0

  package init() {}
}

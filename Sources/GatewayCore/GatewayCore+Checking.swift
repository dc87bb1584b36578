// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Durability
package import LastOut
import Routing

/// What a simulation compares with its model. The host calls none of it.
extension GatewayCore {
  /// Whether anything is not acknowledged, what cannot be sent included; constant time.
  package var hasUnsent: Bool { commands.hasUnsent }

  /// Whether every command that can be sent was sent and answered.
  package var areCommandsDrained: Bool { commands.isDrained }

  /// The keys of which something is not acknowledged, in order of definition.
  package func keysNotAcknowledged() -> [KeyIndex] { commands.unsentKeys() }

  /// When commands have something to do next, apart from the store and the gateway's own topics.
  package func nextCommandDeadline(after now: Moment) -> Moment? {
    commands.nextDeadline(after: now)
  }

  /// The events that were decided and not collected yet.
  package var undeliveredEvents: [CommandEvent] { commands.log.events }

  /// How many keys have changed since their topics were last looked at.
  package var changedKeyCount: Int { commands.log.statuses.changedKeys.count }

  /// Whether an urgent command of `key` waits to be sent.
  package func isUrgentWaiting(_ key: KeyIndex) -> Bool { commands.isUrgentWaiting(key) }

  /// Whether a command of `key` was handed to the broker and has no answer yet.
  package func isInFlight(_ key: KeyIndex) -> Bool { commands.isInFlight(key) }

  /// The keys that the store keeps from being sent now.
  package var withheldKeys: [KeyIndex] { durability?.withheld ?? [] }

  /// What the store holds, and what is being written; `nil` without one.
  package var storePlan: JournalPlan? { durability?.plan }

  /// How many routed messages have expired.
  package var expiredRouteCount: UInt64 { routes.statistics.expired }
}

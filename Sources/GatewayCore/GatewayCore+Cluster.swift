// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Durability
package import LastOut
import Values

/// Taking devices over from other gateways of a cluster, and leaving them to others.
extension GatewayCore {
  /// Takes over what another gateway accepted and has not sent: it settles again and is sent.
  package mutating func takeOver(_ entries: [JournalEntry], at now: Moment) {
    let registry = registry
    pipeline.durability?.takeOver(entries, in: registry, at: now)
  }

  /// The session that carries a device's messages was made or ended: without it, nothing is sent.
  package mutating func sessionChanged(ofDevice device: Int, isUp: Bool, at now: Moment) {
    pipeline.commands.dispatcher.availabilityChanged(
      of: device,
      source: Self.sessionSource,
      isOnline: isUp,
      at: now
    )
  }

  /// The session, among the sources of a device's availability; those of its definition count from 0.
  private static var sessionSource: Int { -1 }

  /// Whether these keys can be left to another gateway: nothing of them is in flight, and everything
  /// accepted is stored.
  package func isStored(_ keys: some Sequence<KeyIndex>) -> Bool {
    guard let durability else { return false }
    return keys.allSatisfy { key in
      !commands.isInFlight(key) && durability.rows.isWritten(key) && !durability.queue.contains(key)
    }
  }

  /// Forgets these keys: another gateway drives their devices.
  ///
  /// What was accepted and stored is that gateway's. Nothing is emitted, and nothing of the store is
  /// removed.
  ///
  /// - Returns: The changes that were received and not answered: another gateway may or may not have
  ///   them.
  package mutating func forget(_ keys: some Sequence<KeyIndex>, at now: Moment) -> [CommandEvent] {
    collectOutcomes(at: now)
    var unanswered: [CommandEvent] = []
    for key in keys { unanswered += pipeline.forget(key, at: now) }
    return unanswered
  }
}

extension CommandPipeline {
  /// Forgets a key; see ``GatewayCore/forget(_:at:)``.
  fileprivate mutating func forget(_ key: KeyIndex, at now: Moment) -> [CommandEvent] {
    let unanswered = durability?.forget(key, in: &commands) ?? []
    commands.forget(key, at: now)
    commands.dispatcher.log.events.removeAll()
    return unanswered.filter { $0.phase == .accepted }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import LastOut
import LastOutTesting

/// Trouble while a member takes a partition's session at the broker.
extension ClusterLife {
  /// A moment at which an owner relies on a permission that it got before.
  enum ConnectionMoment {
    /// The connection is ordered, and not made yet.
    case beforeConnection
    /// The broker has accepted the session, and nothing was sent over it.
    case beforeMessage
  }

  /// Sometimes stops a process at such a moment, briefly or until others have evicted it, and
  /// sometimes kills it.
  ///
  /// - Returns: For how long it is stopped.
  @discardableResult
  func meetTrouble(
    _ member: SimulatedMember,
    _ moment: ConnectionMoment,
    of partition: Partition,
    epoch: UInt64
  ) -> Duration {
    guard isFaulty, member.isUp, !member.isPaused, time.random.chance(5) else { return .zero }
    switch moment {
    case .beforeConnection: seen.stopsBeforeConnection += 1
    case .beforeMessage: seen.stopsBeforeMessage += 1
    }
    if time.random.chance(15) {
      kill(member)
      return .zero
    }
    let isShort = time.random.chance(30)
    let length = Duration.milliseconds(time.random.within(isShort ? 20...3000 : 11_000...20_000))
    say("\(member.name) is stopped for \(length), \(moment) of the session of \(partition)")
    member.pause(for: length)
    if time.random.chance(40) {
      // The engine ends connections that do not answer: it is reached again some time afterwards.
      engine.cut(member.name, for: length + .milliseconds(time.random.within(50...4000)))
    }
    time.plan(after: length) { [unowned self] in
      if sessions.newestOwner(of: partition) > epoch { seen.overtaken += 1 }
    }
    return length
  }
}

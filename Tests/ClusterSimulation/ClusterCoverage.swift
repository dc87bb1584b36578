// Settle
// SPDX-License-Identifier: Apache-2.0

/// How often each thing happened, so that a run in which nothing happens does not count as a good
/// one.
package struct ClusterCoverage: Hashable, Sendable, CustomStringConvertible {
  package var kills = 0
  package var pauses = 0
  package var elections = 0
  package var outages = 0
  package var cuts = 0
  /// Logs of which the engine has forgotten acknowledged entries, and those that their owners have
  /// written again.
  package var forgotten = 0
  package var writtenAgain = 0
  /// Processes that were replaced by ones of a later version.
  package var upgrades = 0
  /// Logs that a member could not read.
  package var unreadable = 0
  package var joins = 0
  package var departures = 0
  package var evictions = 0
  package var wereEvicted = 0
  package var takeovers = 0
  /// Processes that were stopped or killed between the order to connect a session and the
  /// connection.
  package var stopsBeforeConnection = 0
  /// Processes that were stopped or killed between a session's connection and its first message.
  package var stopsBeforeMessage = 0
  /// Of both, those whose partition a newer owner had taken when they went on.
  package var overtaken = 0
  package var lateWrites = 0
  /// Elections after which messages had other numbers.
  package var renumberings = 0
  /// Records that a watch did not show, although it was alive.
  package var unheard = 0
  /// Snapshots of more than one frame.
  package var longSnapshots = 0
  package var accepted = 0
  package var stops = 0
  package var flushes = 0
  package var cancels = 0
  /// Changes of a group, and those that were accepted with the name of a member that has not
  /// stored its value.
  package var groups = 0
  package var groupsInPart = 0
  package var inMemory = 0
  package var refused = 0
  package var rejected = 0
  package var unanswered = 0
  package var unreachable = 0
  /// Messages with requests that nobody received.
  package var undelivered = 0
  /// Requests that were passed on to a member that did not drive the device.
  package var moved = 0
  /// Requests that were executed by the member that was asked, once it had taken the partition.
  package var performed = 0
  /// Requests that nobody has executed, whose owner has ended, or does not reply.
  package var withoutOwner = 0
  package var ownersEnded = 0
  package var silentOwners = 0
  /// Requests that could not go again, because a later one was executed.
  package var overtakenRequests = 0
  package var delivered = 0
  package var duplicates = 0

  package init() {}

  mutating func add(
    _ ledger: ClusterLedger,
    _ engine: SimulatedEngine,
    _ sessions: SimulatedSessions
  ) {
    accepted += ledger.accepted
    delivered += ledger.deliveries
    duplicates += ledger.duplicates
    lateWrites += engine.lateWrites
    renumberings += engine.renumberings
    longSnapshots += engine.longSnapshots
    takeovers += sessions.takeovers
  }

  package mutating func add(_ other: ClusterCoverage) {
    for path in Self.counts.map(\.path) { self[keyPath: path] += other[keyPath: path] }
  }

  /// What never happened; few runs have a change without an answer.
  package var missing: [String] {
    Self.counts.filter { self[keyPath: $0.path] == 0 && $0.path != \.unanswered }.map(\.name)
  }

  package var description: String {
    Self.counts.map { "\(self[keyPath: $0.path]) \($0.name)" }.joined(separator: ", ")
  }

  private static var counts: [(name: String, path: WritableKeyPath<Self, Int>)] {
    [
      ("kills", \.kills), ("pauses", \.pauses), ("elections", \.elections),
      ("outages", \.outages), ("cuts", \.cuts), ("upgrades", \.upgrades),
      ("logs of a later version", \.unreadable), ("joins", \.joins),
      ("departures", \.departures), ("evictions", \.evictions),
      ("members evicted alive", \.wereEvicted), ("sessions taken over or lost", \.takeovers),
      ("stopped before a connection", \.stopsBeforeConnection),
      ("stopped before a first message", \.stopsBeforeMessage),
      ("overtaken meanwhile", \.overtaken),
      ("late writes", \.lateWrites), ("elections that renumbered", \.renumberings),
      ("records unheard", \.unheard), ("snapshots in several frames", \.longSnapshots),
      ("logs forgotten in part", \.forgotten), ("logs written again", \.writtenAgain),
      ("stops", \.stops), ("flushes", \.flushes), ("cancels", \.cancels),
      ("changes of groups", \.groups), ("groups accepted in part", \.groupsInPart),
      ("accepted", \.accepted), ("held in memory", \.inMemory),
      ("refused", \.refused), ("rejected", \.rejected), ("unanswered", \.unanswered),
      ("without a member to ask", \.unreachable), ("messages undelivered", \.undelivered),
      ("requests moved", \.moved), ("requests that came back", \.performed),
      ("requests without an owner", \.withoutOwner),
      ("requests whose owner ended", \.ownersEnded),
      ("requests whose owner is silent", \.silentOwners),
      ("requests overtaken", \.overtakenRequests),
      ("delivered", \.delivered), ("duplicates", \.duplicates),
    ]
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// Counts of the events in a run.
package struct Coverage: CustomStringConvertible, Sendable {
  /// What is counted.
  package enum Kind: Int, CaseIterable, Sendable {
    case changes
    case refusedChanges
    /// Changes of groups, and messages for all members of one.
    case groupChanges
    case groupMessages
    case publishes
    case repetitions
    case cuts
    case restarts
    case shutdowns
    case pauses
    case confirmed
    case failed
    case expired
    case cancelled
    case unchanged
    case superseded
    case byHand
    /// Devices that repeat what they were asked for, then report their way.
    case travels
    case restsElsewhere
    case replayed
    case powerCuts
    case sleeps
    case diskFaults
    case unkept
    /// Urgent values that were back after what replaced them was rejected.
    case restored
    case expiredAtStart
    case withheld
    case reloads
    /// Reloads that no restart interrupted.
    case finishedReloads
    case routed
    case forwarded
    case passed
    /// Urgent messages of routes.
    case urgent
    case lostRoutes
    /// Messages of routes for lamps and groups of a bridge.
    case grouped
    case states
    case clearedStates
    case clearedAfterReconnect
    case brokerLosses
    case lateOpenings
    case relatedChanges
    case resumedLate
    case requests
    /// Changes that are part of a feedback loop, and lives that have such.
    case slowedChanges
    case loopLives
  }

  private var counts = Array(repeating: 0, count: Kind.allCases.count)

  package init() {}

  package internal(set) subscript(kind: Kind) -> Int {
    get { counts[kind.rawValue] }
    set { counts[kind.rawValue] = newValue }
  }

  /// What never happened.
  package var missing: [Kind] { Kind.allCases.filter { self[$0] == 0 } }

  package var description: String {
    Kind.allCases.map { "\($0): \(self[$0])" }.joined(separator: ", ")
  }

  /// Adds the counts of another run.
  package mutating func add(_ other: Coverage) {
    for kind in Kind.allCases { self[kind] += other[kind] }
  }
}

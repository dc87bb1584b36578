// Settle
// SPDX-License-Identifier: Apache-2.0

/// Counts of the events in a run.
package struct Coverage: Sendable {
  package internal(set) var changes = 0
  package internal(set) var refusedChanges = 0
  /// Changes of groups, and messages for all members of one.
  package internal(set) var groupChanges = 0
  package internal(set) var groupMessages = 0
  package internal(set) var publishes = 0
  package internal(set) var repetitions = 0
  package internal(set) var cuts = 0
  package internal(set) var restarts = 0
  package internal(set) var shutdowns = 0
  package internal(set) var pauses = 0
  package internal(set) var confirmed = 0
  package internal(set) var failed = 0
  package internal(set) var expired = 0
  package internal(set) var cancelled = 0
  package internal(set) var unchanged = 0
  package internal(set) var superseded = 0
  package internal(set) var byHand = 0
  package internal(set) var replayed = 0
  package internal(set) var powerCuts = 0
  package internal(set) var sleeps = 0
  package internal(set) var diskFaults = 0
  package internal(set) var unkept = 0
  package internal(set) var expiredAtStart = 0
  package internal(set) var withheld = 0
  package internal(set) var reloads = 0
  /// Reloads that no restart interrupted.
  package internal(set) var finishedReloads = 0
  package internal(set) var routed = 0
  package internal(set) var forwarded = 0
  package internal(set) var passed = 0
  /// Urgent messages of routes.
  package internal(set) var urgent = 0
  package internal(set) var lostRoutes = 0
  package internal(set) var states = 0
  package internal(set) var clearedStates = 0
  package internal(set) var clearedAfterReconnect = 0
  package internal(set) var brokerLosses = 0
  package internal(set) var lateOpenings = 0
  package internal(set) var relatedChanges = 0
  package internal(set) var resumedLate = 0
  package internal(set) var requests = 0

  package init() {}

  /// Adds the counts of another run.
  package mutating func add(_ other: Coverage) {
    changes += other.changes
    refusedChanges += other.refusedChanges
    groupChanges += other.groupChanges
    groupMessages += other.groupMessages
    publishes += other.publishes
    repetitions += other.repetitions
    cuts += other.cuts
    restarts += other.restarts
    shutdowns += other.shutdowns
    pauses += other.pauses
    confirmed += other.confirmed
    failed += other.failed
    expired += other.expired
    cancelled += other.cancelled
    unchanged += other.unchanged
    superseded += other.superseded
    byHand += other.byHand
    replayed += other.replayed
    powerCuts += other.powerCuts
    sleeps += other.sleeps
    diskFaults += other.diskFaults
    unkept += other.unkept
    expiredAtStart += other.expiredAtStart
    withheld += other.withheld
    reloads += other.reloads
    finishedReloads += other.finishedReloads
    routed += other.routed
    forwarded += other.forwarded
    passed += other.passed
    urgent += other.urgent
    lostRoutes += other.lostRoutes
    states += other.states
    clearedStates += other.clearedStates
    clearedAfterReconnect += other.clearedAfterReconnect
    brokerLosses += other.brokerLosses
    lateOpenings += other.lateOpenings
    relatedChanges += other.relatedChanges
    resumedLate += other.resumedLate
    requests += other.requests
  }
}

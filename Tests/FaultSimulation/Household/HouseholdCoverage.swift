// Settle
// SPDX-License-Identifier: Apache-2.0

/// How often lives in a household met each situation that the contract speaks of, and how their
/// devices ended.
package struct HouseholdCoverage: CustomStringConvertible, Sendable {
  package enum Kind: Int, CaseIterable, Sendable {
    // The world.
    case lateAcknowledgements, reorderedAcknowledgements, lostAcknowledgements
    case refusals, clamps, garbage, drops, forgottenValues, crashes, slowCommits
    case certainLosses, restored, reloads
    case hands, presses, cancels, mergedChanges, scenes, groupChanges, groupMessages
    case memberChanges
    // Reports while a device travels.
    case interimReports, confirmedThenTravelled, restedElsewhere, stopEndedTravel
    case cancelInTravel, fiveMinutes
    // Implied values.
    case impliesOff, impliesOn, impliesCarried, impliesUnchanged, impliesZero, impliesStated
    case impliesToggled, impliesByHand
    // Order and feedback.
    case orderWaits, feedbackSlowed
  }

  private var counts = Array(repeating: 0, count: Kind.allCases.count)
  /// How the properties ended that had an expectation.
  package internal(set) var outcomes: [String: Int] = [:]
  /// The same in lives without an injected fault.
  package internal(set) var faultlessOutcomes: [String: Int] = [:]
  /// The properties of those that only a phase explains.
  package internal(set) var whyNots: [String: Int] = [:]
  /// How often each clause was violated that is not held.
  package internal(set) var violations: [Clause: Int] = [:]
  /// The seeds whose lives violated clauses that are not held, the first ones.
  package internal(set) var open: [Clause: [UInt64]] = [:]
  package internal(set) var openLives: [Clause: Int] = [:]

  package init() {}

  package internal(set) subscript(kind: Kind) -> Int {
    get { counts[kind.rawValue] }
    set { counts[kind.rawValue] = newValue }
  }

  /// What never happened.
  package var missing: [Kind] { Kind.allCases.filter { self[$0] == 0 } }

  /// The share of devices without an injected fault whose state only a phase explains, in percent.
  package var faultlessWhyNots: Double {
    let all = faultlessOutcomes.values.reduce(0, +)
    let bad = faultlessOutcomes.filter { Self.unwanted.contains($0.key) }.values.reduce(0, +)
    return all == 0 ? 0 : 100 * Double(bad) / Double(all)
  }

  /// The phases that a person did not ask for.
  private static let unwanted: Set<String> = ["failed", "expired", "rejected"]

  mutating func record(_ outcome: String, of property: String, isFaultless: Bool) {
    outcomes[outcome, default: 0] += 1
    guard isFaultless else { return }
    faultlessOutcomes[outcome, default: 0] += 1
    if Self.unwanted.contains(outcome) { whyNots[property, default: 0] += 1 }
  }

  mutating func violated(_ clause: Clause, seed: UInt64) {
    violations[clause, default: 0] += 1
    guard open[clause]?.contains(seed) != true else { return }
    openLives[clause, default: 0] += 1
    if open[clause, default: []].count < 10 { open[clause, default: []].append(seed) }
  }

  package mutating func add(_ other: HouseholdCoverage) {
    for kind in Kind.allCases { self[kind] += other[kind] }
    outcomes.merge(other.outcomes, uniquingKeysWith: +)
    whyNots.merge(other.whyNots, uniquingKeysWith: +)
    violations.merge(other.violations, uniquingKeysWith: +)
    faultlessOutcomes.merge(other.faultlessOutcomes, uniquingKeysWith: +)
    openLives.merge(other.openLives, uniquingKeysWith: +)
    for (clause, seeds) in other.open {
      open[clause] = Array((open[clause, default: []] + seeds).prefix(10))
    }
  }

  package var description: String {
    let met = Kind.allCases.map { "\($0): \(self[$0])" }.joined(separator: ", ")
    let lives = Clause.allCases.compactMap { clause in
      openLives[clause].map { "\n  \(clause): \($0) lives, such as \(open[clause] ?? [])" }
    }
    return """
      \(met)
      properties of devices at rest: \(Self.text(outcomes))
      without an injected fault: \(Self.text(faultlessOutcomes)); \
      \((faultlessWhyNots * 100).rounded() / 100) % only a phase explains: \
      \(Self.text(whyNots))
      clauses that are not held yet:\(lives.isEmpty ? " none violated" : lives.joined())
      """
  }

  private static func text(_ outcomes: [String: Int]) -> String {
    outcomes.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
  }
}

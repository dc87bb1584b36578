// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// The calls of `FaultSimulation/Journalled.swift` alone, which has names for keys and keeps no
/// values; they go with it, together with ``JournalPlan/given``.
extension JournalPlan {
  package struct Receipt: Hashable, Sendable {
    package var sequence: UInt64
    package var fault: JournalFault?
  }

  private struct GivenValue: JournalValue {
    var bytes: [UInt8]
  }

  package mutating func accept(
    _ value: [UInt8],
    for name: String,
    ttl: Duration,
    at now: Moment,
    isUrgent: Bool
  ) -> Receipt {
    let expiresAt = now.advanced(by: ttl)
    let key = number(of: name)
    let sequence = accept(key, at: now, expiresAt: expiresAt, isUrgent: isUrgent)
    given[sequence] = value
    return Receipt(sequence: sequence, fault: fault)
  }

  package mutating func nextWork(at now: Moment) -> JournalWork? {
    let given = given
    return nextWork(at: now) { _, sequence in GivenValue(bytes: given[sequence] ?? []) }
  }

  package func refusal(of name: String, at now: Moment) -> JournalFault? {
    numbers[name].flatMap { refusal(of: $0, at: now) }
  }

  package mutating func sending(_ name: String, sequence: UInt64) {
    sending(number(of: name), sequence: sequence)
  }

  @discardableResult
  package mutating func ended(
    _ name: String,
    _ sequence: UInt64,
    at now: Moment,
    promptly: Bool
  ) -> Bool {
    given[sequence] = nil
    return ended(number(of: name), sequence, at: now, promptly: promptly)
  }

  package func holdsOlder(_ name: String, than sequence: UInt64, at now: Moment) -> Bool {
    numbers[name].map { holdsOlder($0, than: sequence, at: now) } ?? false
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// A key's number in one ``JournalPlan``; the file knows its name.
package struct JournalKey: Hashable, Sendable {
  /// Counts from zero.
  package let rawValue: Int32
}

extension JournalPlan {
  /// The number of a key, given with its first mention.
  package mutating func number(of name: String) -> JournalKey {
    if let known = numbers[name] { return known }
    let key = JournalKey(rawValue: Int32(slots.count))
    numbers[name] = key
    names.append(name)
    slots.append(Slot())
    return key
  }

  func name(of key: JournalKey) -> String { names[Int(key.rawValue)] }
}

// MARK: - By name

/// The same for whoever has a name.
extension JournalPlan {
  package func refusal(of name: String, at now: Moment) -> JournalFault? {
    numbers[name].flatMap { refusal(of: $0, at: now) }
  }

  /// Takes the newest value of a key; `value` is what the owner needs to send it after a restart.
  package mutating func accept(
    _ value: [UInt8],
    for name: String,
    ttl: Duration,
    at now: Moment,
    isUrgent: Bool = false
  ) -> Receipt {
    accept(
      value,
      for: number(of: name),
      at: now,
      expiresAt: now.advanced(by: ttl),
      isUrgent: isUrgent
    )
  }

  package mutating func sending(_ name: String, sequence: UInt64) {
    sending(number(of: name), sequence: sequence)
  }

  @discardableResult
  package mutating func finished(_ name: String, through sequence: UInt64, at now: Moment) -> Bool {
    finished(number(of: name), through: sequence, at: now)
  }

  @discardableResult
  package mutating func ended(
    _ name: String,
    _ sequence: UInt64,
    at now: Moment,
    promptly: Bool
  ) -> Bool {
    ended(number(of: name), sequence, at: now, promptly: promptly)
  }

  package func keeps(_ name: String) -> Bool { numbers[name].map(keeps) ?? false }

  package mutating func withdrawn(
    _ name: String,
    through sequence: UInt64,
    at now: Moment,
    isUrgent: Bool = false
  ) {
    withdrawn(number(of: name), through: sequence, at: now, isUrgent: isUrgent)
  }

  package func holdsOlder(_ name: String, than sequence: UInt64, at now: Moment) -> Bool {
    numbers[name].map { holdsOlder($0, than: sequence, at: now) } ?? false
  }

  package func isNewest(_ name: String, _ sequence: UInt64) -> Bool {
    numbers[name].map { isNewest($0, sequence) } ?? false
  }
}

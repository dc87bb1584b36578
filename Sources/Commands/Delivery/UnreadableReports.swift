// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
package import LastOut
import Values

/// The reports that could not be read: how many each key had, and what the newest says.
///
/// Only keys that had one take memory, and at most ``limit`` keys do; those of others are counted
/// together.
package struct UnreadableReports: Sendable {
  /// The reports of one key.
  package struct Record: Hashable, Sendable {
    package fileprivate(set) var count: UInt64
    /// The newest, shortened and without control characters.
    package fileprivate(set) var excerpt: String
  }

  static let limit = 4096

  /// How many there were of all keys.
  package private(set) var total: UInt64 = 0
  private var records: [KeyIndex: Record] = [:]

  /// The keys that had any, in order.
  package var keys: [KeyIndex] { records.keys.sorted { $0.rawValue < $1.rawValue } }

  package subscript(key: KeyIndex) -> Record? { records[key] }

  /// Records a report; returns whether it is the first of its key, where the key has a record.
  mutating func record(_ report: JSONValue, of key: KeyIndex) -> Bool {
    total += 1
    let known = records[key]
    guard known != nil || records.count < Self.limit else { return false }
    records[key] = Record(count: (known?.count ?? 0) + 1, excerpt: Excerpt.of(report))
    return known == nil
  }

  /// Removes the record of a key.
  mutating func remove(_ key: KeyIndex) {
    if !records.isEmpty { records[key] = nil }
  }
}

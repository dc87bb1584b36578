// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// The writes of records without an answer, at most one for each key.
struct RecordWrites: Sendable {
  struct Write: Sendable {
    var record: ClusterRecord
    var sentAt: Moment
    /// Whether it ended without being stored for certain: what is read next decides.
    var isUnsure = false
    /// When the record is read then; `nil` while it is being written or read.
    var readAt: Moment?
  }

  private var writes: [RecordKey: Write] = [:]

  func isBusy(_ key: RecordKey) -> Bool { writes[key] != nil }

  subscript(key: RecordKey) -> Write? { writes[key] }

  mutating func began(_ key: RecordKey, _ record: ClusterRecord, at now: Moment) {
    writes[key] = Write(record: record, sentAt: now)
  }

  mutating func ended(_ key: RecordKey) -> Write? { writes.removeValue(forKey: key) }

  /// Plans to read the record of a write whose outcome is unknown.
  mutating func read(_ key: RecordKey, at moment: Moment) {
    writes[key]?.isUnsure = true
    writes[key]?.readAt = moment
  }

  var nextRetry: Moment? { writes.values.compactMap(\.readAt).min() }

  /// The keys to read now.
  mutating func popDue(at now: Moment) -> [RecordKey] {
    var due: [RecordKey] = []
    for (key, write) in writes.sorted(by: { $0.key < $1.key }) {
      guard let moment = write.readAt, moment <= now else { continue }
      writes[key]?.readAt = nil
      due.append(key)
    }
    return due
  }
}

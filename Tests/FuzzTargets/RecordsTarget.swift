// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
@testable import Engine
import LastOut

/// The records of a cluster: each part of the input is the end of a subject, a line feed and a
/// record.
///
/// What can be read is written as bytes that read the same, and a member that finds these records
/// goes on.
enum RecordsTarget {
  static let run: @Sendable ([UInt8]) -> Void = { bytes in
    var records: [(RecordKey, ClusterRecord?)] = []
    for part in Parts.of(bytes) {
      let (head, body) = Parts.head(part)
      guard let key = RecordCoding.key(String(decoding: head, as: UTF8.self)) else { continue }
      precondition(
        RecordCoding.key(RecordCoding.token(key)) == key,
        "A subject reads as another."
      )
      let record = RecordCoding.record(body, of: key)
      if let record {
        precondition(
          RecordCoding.record(RecordCoding.bytes(record), of: key) == record,
          "A record reads as another."
        )
      }
      records.append((key, record))
    }
    join(records)
  }

  /// Lets a member find these records, and stores what it writes.
  private static func join(_ records: [(RecordKey, ClusterRecord?)]) {
    var membership = Membership(name: "a", incarnation: 1, digest: 1, partitions: 4)
    var stored = StoredRecords()
    var now = Moment(nanoseconds: 1_000_000_000)
    for (place, (key, record)) in records.enumerated() {
      // Half of them are there at the start, the others change while the member runs.
      if place == records.count / 2 { membership.readAll(at: now) }
      membership.observed(key, record, revision: stored.store(key, record), at: now)
      perform(&membership, &stored, at: now)
    }
    if records.count < 2 { membership.readAll(at: now) }
    for _ in 0..<20 {
      perform(&membership, &stored, at: now)
      now = now.advanced(by: .seconds(1))
      membership.advance(to: now)
    }
  }

  private static func perform(
    _ membership: inout Membership,
    _ stored: inout StoredRecords,
    at now: Moment
  ) {
    for effect in membership.dequeueEffects() {
      switch effect {
      case .write(let key, let record, let predecessor):
        let outcome: WriteOutcome =
          stored.matches(predecessor, of: key)
          ? .stored(revision: stored.store(key, record)) : .conflict
        membership.wrote(key, outcome, at: now)
      case .read(let key): membership.read(key, stored[key], at: now)
      case .open(let partition, let epoch): membership.opened(partition, epoch: epoch, at: now)
      case .connect(let partition): membership.connected(partition, at: now)
      case .handOver(let partition): membership.handedOver(partition, at: now)
      case .drive, .pause, .abandon, .log, .refuse, .left: break
      }
    }
  }

  /// The records as the engine has them.
  private struct StoredRecords {
    private var records: [RecordKey: (record: ClusterRecord?, revision: UInt64)] = [:]
    private var revision: UInt64 = 0

    subscript(key: RecordKey) -> (record: ClusterRecord?, revision: UInt64) {
      records[key] ?? (nil, 0)
    }

    func matches(_ predecessor: Predecessor, of key: RecordKey) -> Bool {
      self[key].revision == predecessor.revision
    }

    /// - Returns: The revision of the record.
    mutating func store(_ key: RecordKey, _ record: ClusterRecord?) -> UInt64 {
      revision += 1
      records[key] = (record, revision)
      return revision
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// Records that were written and read.
extension Membership {
  /// Asks for a write of a record; there is none of its key yet.
  mutating func write(_ key: RecordKey, _ record: ClusterRecord, at now: Moment) {
    writes.began(key, record, at: now)
    effects.append(.write(key, record, after: view.predecessor(of: key)))
  }

  /// A write has ended.
  package mutating func wrote(_ key: RecordKey, _ outcome: WriteOutcome, at now: Moment) {
    guard let write = writes[key] else { return }
    switch outcome {
    case .stored(let revision):
      _ = writes.ended(key)
      _ = view.observe(key, write.record, revision: revision, at: now)
      stored(key, write, at: now)
    case .conflict: writes.read(key, at: now)
    // It may be stored yet: what is read next decides, and the revision of the next write.
    case .unknown: writes.read(key, at: now.advanced(by: settings.retry))
    }
    advance(to: now)
  }

  /// A record was read, or has changed; `nil`: it was never written, or cannot be read.
  ///
  /// - Returns: Whether it was not known before.
  @discardableResult
  package mutating func observed(
    _ key: RecordKey,
    _ record: ClusterRecord?,
    revision: UInt64,
    at now: Moment
  ) -> Bool {
    guard standing != .ended, view.observe(key, record, revision: revision, at: now) else {
      return false
    }
    guard standing != .reading else { return true }
    if case .owner(let partition) = key, let owner = view.unknownOwner(of: partition), owner != name
    {
      effects.append(.read(.member(owner)))  // The watch has missed it.
    }
    if let write = writes[key], write.isUnsure, write.record == record {
      // It is stored, and only the answer was lost.
      _ = writes.ended(key)
      stored(key, write, at: now)
    } else {
      changed(key, record, at: now)
    }
    advance(to: now)
    return true
  }

  /// A read has ended.
  ///
  /// `found` is `nil` without an answer; where there is no record, its revision is 0.
  package mutating func read(
    _ key: RecordKey,
    _ found: (record: ClusterRecord?, revision: UInt64)?,
    at now: Moment
  ) {
    if let found {
      view.expect(Predecessor(found.record, revision: found.revision), of: key)
      observed(key, found.record, revision: found.revision, at: now)
    }
    guard writes.isBusy(key) else { return }
    if found == nil { return writes.read(key, at: now.advanced(by: settings.retry)) }
    // The write is not stored. Should it arrive late, its expected revision is outdated by the next
    // one, or it counts after all and is observed.
    let write = writes.ended(key)
    if case .owner(let partition) = key, let write { notStored(write, of: partition, at: now) }
    if key == .member(name) { lease.retry(at: now.advanced(by: settings.retry)) }
    advance(to: now)
  }

  /// One of this member's writes is stored.
  private mutating func stored(_ key: RecordKey, _ write: RecordWrites.Write, at now: Moment) {
    switch (key, write.record) {
    case (.member(name), .member(let record)):
      guard record.incarnation == incarnation else { return }
      if record.state == .left {
        standing = .ended
        effects.append(.left)
        return
      }
      if standing == .joining {
        standing = .member
        effects.append(.log(.joined(incarnation: incarnation)))
      }
      renewed(sentAt: write.sentAt, at: now)
    case (.owner(let partition), .owner(let record)): ownerStored(partition, record, at: now)
    default: break
    }
  }

  /// Someone else has changed a record.
  private mutating func changed(_ key: RecordKey, _ record: ClusterRecord?, at now: Moment) {
    switch key {
    case .member(name): ownPresenceChanged(record?.member, at: now)
    case .member: break
    case .owner(let partition):
      guard let state = held[partition] else { return }
      switch state {
      case .claiming, .releasing: return  // The outcome of its own write decides.
      default: break
      }
      if record?.owner?.member == name, record?.owner?.epoch == state.epoch { return }
      held[partition] = nil
      effects.append(.abandon(partition))
    }
  }

  private mutating func ownPresenceChanged(_ record: MemberRecord?, at now: Moment) {
    if standing == .joining {
      // It was evicted before it knew that it had joined.
      if let record, record.incarnation == incarnation, !record.state.isPresent {
        incarnation &+= 1
      }
      guard let record, record.state.isPresent, record.incarnation != incarnation else { return }
      // The last renewals of an earlier process may be seen late; a living namesake goes on.
      let since = namesakeSeen ?? now
      namesakeSeen = since
      guard since.duration(to: now) > settings.suspicion else { return }
      standing = .ended
      effects.append(.refuse(name))
      return
    }
    // An earlier renewal of this process, which is reported late, changes nothing.
    if let record, record.incarnation == incarnation, record.state.isPresent { return }
    rejoin(at: now)
  }
}

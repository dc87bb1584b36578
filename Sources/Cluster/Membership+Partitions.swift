// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// Taking partitions and giving them away.
extension Membership {
  /// Claims what this member should take, and gives away what it should not have.
  mutating func balance(at now: Moment) {
    guard standing == .member || standing == .leaving, lease.isTrusted(settings, at: now) else {
      return
    }
    compareDevices()
    let assignment = view.assignment(for: name, unreadable: Set(unreadable.keys))
    for (partition, taker) in assignment.takers.sorted(by: { $0.key < $1.key })
    where taker == name && standing == .member { claim(partition, at: now) }
    if standing == .leaving {
      giveAway(Set(held.keys), atMost: held.count)
    } else {
      giveAway(assignment.movable, atMost: held.count - (assignment.shares[name] ?? 0))
    }
    reopenUnreadable(assignment, at: now)
    if standing == .leaving, held.isEmpty { lease.hurry(at: now) }
    resumeUnclaimed(at: now)
  }

  private mutating func compareDevices() {
    guard let expected = view.digest else { return }
    let isOther = expected != digest
    guard isOther != hasOtherDevices else { return }
    hasOtherDevices = isOther
    effects.append(
      .log(isOther ? .otherDevices(digest: digest, expected: expected) : .sameDevices)
    )
  }

  private mutating func claim(_ partition: Partition, at now: Moment) {
    let key = RecordKey.owner(partition)
    guard held[partition] == nil, !writes.isBusy(key) else { return }
    let epoch = (view.holdings[partition.number].record?.epoch ?? 0) + 1
    held[partition] = .claiming(epoch: epoch)
    write(
      key,
      .owner(OwnerRecord(member: name, incarnation: incarnation, beat: beat, epoch: epoch)),
      at: now
    )
  }

  /// What the records say is this member's, and it does not have: it gave up before it was read
  /// that its claim was stored.
  private mutating func resumeUnclaimed(at now: Moment) {
    for partition in view.partitions where held[partition] == nil {
      guard view.owner(of: partition) == name,
        let record = view.holdings[partition.number].record, record.incarnation == incarnation,
        !writes.isBusy(.owner(partition))
      else { continue }
      release(partition, epoch: record.epoch, at: now)
    }
  }

  /// Allows this member to open logs again that nobody can read; someone may have mended them.
  private mutating func reopenUnreadable(_ assignment: Assignment, at now: Moment) {
    for (partition, since) in unreadable
    where since.duration(to: now) >= settings.reopening && assignment.takers[partition] == nil
      && view.owner(of: partition) == nil
    {
      unreadable[partition] = nil
      lease.hurry(at: now)
    }
  }

  private mutating func giveAway(_ partitions: Set<Partition>, atMost excess: Int) {
    var moving = 0
    var others: [Partition] = []
    for (partition, state) in held {
      switch state {
      case .handingOver, .releasing: moving += 1
      case .mayConnect, .connecting, .mayDrive, .driving:
        if partitions.contains(partition) { others.append(partition) }
      case .claiming, .opening: break
      }
    }
    let count = min(excess, Self.movesAtOnce) - moving
    for partition in others.sorted().suffix(max(0, count)) {
      held[partition] = .handingOver(epoch: held[partition]?.epoch ?? 0)
      effects.append(.handOver(partition))
    }
  }

  /// The owner's record of a partition is stored as this member wrote it.
  mutating func ownerStored(_ partition: Partition, _ record: OwnerRecord, at now: Moment) {
    switch held[partition] {
    case .claiming(let epoch) where record.member == name && record.epoch == epoch:
      held[partition] = .opening(epoch: epoch)
      effects.append(.open(partition, epoch: epoch))
    case .releasing where record.member == nil: held[partition] = nil
    default: break
    }
  }

  /// A write of an owner's record is not stored.
  mutating func notStored(_ write: RecordWrites.Write, of partition: Partition, at now: Moment) {
    switch held[partition] {
    case .claiming: held[partition] = nil  // ``balance(at:)`` decides again.
    case .releasing(let epoch): release(partition, epoch: epoch, at: now)
    default: break
    }
  }

  private mutating func release(_ partition: Partition, epoch: UInt64, at now: Moment) {
    guard view.owner(of: partition) == name else {
      held[partition] = nil
      return
    }
    held[partition] = .releasing(epoch: epoch)
    write(
      .owner(partition),
      .owner(OwnerRecord(member: nil, incarnation: incarnation, beat: beat, epoch: epoch)),
      at: now
    )
  }

  // MARK: - The host's reports

  /// The log of a partition was closed for earlier owners and read.
  package mutating func opened(_ partition: Partition, epoch: UInt64, at now: Moment) {
    guard case .opening(epoch) = held[partition] else { return }
    held[partition] = .mayConnect(epoch: epoch, since: now)
    lease.hurry(at: now)
    advance(to: now)
  }

  /// The log of a partition has an entry that this member cannot read: it is given back, and not
  /// taken again while another member may be able to read it.
  package mutating func openFailed(_ partition: Partition, epoch: UInt64, at now: Moment) {
    guard case .opening(epoch) = held[partition] else { return }
    unreadable[partition] = now
    lease.hurry(at: now)  // The others take it once they have read that this member cannot.
    release(partition, epoch: epoch, at: now)
    advance(to: now)
  }

  /// Another member has written to the log of a partition: it is the owner.
  package mutating func lost(_ partition: Partition, epoch: UInt64, at now: Moment) {
    guard let state = held[partition], state.epoch == epoch else { return }
    held[partition] = nil
    effects.append(.abandon(partition))
    effects.append(.read(.owner(partition)))
    lease.hurry(at: now)
    advance(to: now)
  }

  /// The broker has accepted the session of a partition.
  package mutating func connected(_ partition: Partition, at now: Moment) {
    guard case .connecting(let epoch) = held[partition] else { return }
    held[partition] = .mayDrive(epoch: epoch, since: now)
    lease.hurry(at: now)
    advance(to: now)
  }

  /// The session of a partition ended: the connection was lost, or another member has taken it.
  package mutating func disconnected(_ partition: Partition, at now: Moment) {
    switch held[partition] {
    case .driving(let epoch):
      effects.append(.pause(partition))
      held[partition] = .mayConnect(epoch: epoch, since: now)
    case .connecting(let epoch), .mayDrive(let epoch, _):
      held[partition] = .mayConnect(epoch: epoch, since: now)
    default: return
    }
    // Another owner may have taken it.
    effects.append(.read(.owner(partition)))
    lease.hurry(at: now)
    advance(to: now)
  }

  /// The host has finished ``MembershipEffect/handOver(_:)``.
  package mutating func handedOver(_ partition: Partition, at now: Moment) {
    guard case .handingOver(let epoch) = held[partition] else { return }
    release(partition, epoch: epoch, at: now)
    advance(to: now)
  }
}

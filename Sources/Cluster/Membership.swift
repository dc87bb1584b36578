// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// Decides which partitions a member of a cluster drives: what it reads and the time go in, writes
/// and orders to the host come out.
///
/// Three things together keep a device from being driven by two. The *record* of a partition names
/// one owner, by compare-and-set. The *log* of the partition takes entries of the newest owner
/// alone. The *session* at the broker belongs to the client that connected last; and an owner
/// connects, and sends its first message after that, only once a renewal of its lease was stored
/// that it sent afterwards. So one that was evicted while it slept cannot take its session back.
///
/// It has no clock and does no I/O. After any call the owner performs what ``dequeueEffects()``
/// returns and arms a timer for ``nextDeadline(after:)``.
package struct Membership: Sendable {
  package enum Standing: Hashable, Sendable {
    /// The records are being read.
    case reading
    /// It writes its presence, or waits for an earlier one of its name to end.
    case joining
    case member
    case leaving
    case ended
  }

  /// How many partitions are given away at a time: the others are driven meanwhile.
  static let movesAtOnce = 4

  package let name: String
  let settings: LeaseSettings
  /// How long after the end of another's lease this member evicts it.
  ///
  /// It differs between members, so that one of them is the first.
  private let turn: Duration
  package internal(set) var incarnation: UInt64
  package internal(set) var standing = Standing.reading
  package internal(set) var view: ClusterView
  package internal(set) var held: [Partition: HeldPartition] = [:]
  /// The partitions whose logs this member cannot read, and since when; another may.
  var unreadable: [Partition: Moment] = [:]
  /// The digest of this member's device files.
  package internal(set) var digest: UInt64
  /// Whether the broker can be reached.
  package internal(set) var isBrokerReachable = true
  var lease = Lease()
  var beat: UInt64 = 0
  var writes = RecordWrites()
  var effects: [MembershipEffect] = []
  var hasOtherDevices = false
  /// When another process of this name was seen to renew, while this one joins.
  var namesakeSeen: Moment?
  /// When ``advance(to:)`` was called last; a long time without is a pause.
  var lastAdvance: Moment?

  /// - Parameters:
  ///   - name: The member's name, unique in the cluster.
  ///   - incarnation: Random.
  ///   - digest: Of the device files.
  ///   - partitions: The cluster's number of partitions.
  ///   - settings: The times of leases.
  package init(
    name: String,
    incarnation: UInt64,
    digest: UInt64,
    partitions: Int,
    settings: LeaseSettings = LeaseSettings()
  ) {
    self.name = name
    self.incarnation = incarnation
    self.digest = digest
    self.settings = settings
    turn = settings.turn * Partition(of: name, count: 4).number
    view = ClusterView(partitions: partitions)
  }

  // MARK: - Out

  /// Returns what to do since the last call, in order.
  package mutating func dequeueEffects() -> [MembershipEffect] { exchange(&effects, with: []) }

  /// When ``advance(to:)`` has something to do; `nil` when nothing waits for time.
  package func nextDeadline(after now: Moment) -> Moment? {
    if standing == .ended || standing == .reading { return nil }
    let isJoining = standing == .joining
    var moments = [writes.nextRetry]
    // A longer sleep would look like a pause.
    if isJoining { moments.append((lastAdvance ?? now).advanced(by: settings.renewal)) }
    if !isJoining, !writes.isBusy(.member(name)) { moments.append(lease.dueAt) }
    if isJoining || isTrusted(at: now) {
      for peer in view.peers.keys
      where (peer == name) == isJoining && !writes.isBusy(.member(peer)) {
        moments.append(peer == name ? view.endOfLease(of: peer, settings) : evictionDue(of: peer))
      }
    }
    return moments.compactMap(\.self).min()
  }

  /// Whether the member's lease was renewed lately.
  package func isTrusted(at now: Moment) -> Bool { lease.isTrusted(settings, at: now) }

  /// Whether this member drives a partition now.
  package func drives(_ partition: Partition) -> Bool {
    if case .driving = held[partition] { true } else { false }
  }

  // MARK: - Time

  /// Does everything that is due.
  package mutating func advance(to now: Moment) {
    guard standing != .ended, standing != .reading else { return }
    noticePause(at: now)
    for key in writes.popDue(at: now) { effects.append(.read(key)) }
    if standing == .joining { join(at: now) } else { renew(at: now) }
    evictSilent(at: now)
    balance(at: now)
  }

  /// After a pause nothing that this member saw counts: neither its own lease nor the silence of
  /// others.
  private mutating func noticePause(at now: Moment) {
    defer { lastAdvance = now }
    guard let lastAdvance, lastAdvance.duration(to: now) > settings.suspicion else { return }
    view.trustAll(at: now)
    guard standing != .joining, !lease.isTrusted(settings, at: now) else { return }
    for (partition, state) in held.sorted(by: { $0.key < $1.key }) {
      guard case .driving(let epoch) = state else { continue }
      held[partition] = .mayDrive(epoch: epoch, since: now)
      effects.append(.pause(partition))
    }
    lease.hurry(at: now)
  }

  // MARK: - Joining and leaving

  /// The records were read once; what follows are changes.
  package mutating func readAll(at now: Moment) {
    guard standing == .reading else { return }
    standing = .joining
    advance(to: now)
  }

  private mutating func join(at now: Moment) {
    let key = RecordKey.member(name)
    guard !writes.isBusy(key) else { return }
    if let known = view.peers[name], known.record.incarnation != incarnation,
      known.record.state.isPresent
    {
      // An earlier process of this name, or a living namesake, which may end first.
      guard let end = view.endOfLease(of: name, settings), end <= now else { return }
    }
    writePresence(at: now)
  }

  /// Writes the member's own record.
  private mutating func writePresence(at now: Moment) {
    beat = max(beat, view.peers[name]?.record.beat ?? 0) + 1
    let state: MemberRecord.State =
      switch standing {
      case .leaving: held.isEmpty ? .left : .leaving
      default: isBrokerReachable ? .ready : .blocked
      }
    lease.sent(settings, at: now)
    write(
      .member(name),
      .member(
        MemberRecord(
          incarnation: incarnation,
          state: state,
          beat: beat,
          digest: digest,
          unreadable: Set(unreadable.keys)
        )
      ),
      at: now
    )
  }

  /// Gives all partitions away and ends; ``MembershipEffect/left`` follows.
  package mutating func leave(at now: Moment) {
    switch standing {
    case .leaving, .ended: return
    case .reading, .joining:
      standing = .ended
      effects.append(.left)
    case .member:
      standing = .leaving
      lease.hurry(at: now)
      advance(to: now)
    }
  }

  /// The member's broker can or cannot be reached: without it, it takes no partitions.
  package mutating func brokerChanged(isReachable: Bool, at now: Moment) {
    guard isBrokerReachable != isReachable else { return }
    isBrokerReachable = isReachable
    lease.hurry(at: now)
    advance(to: now)
  }

  /// The member has read other device files.
  package mutating func devicesChanged(digest: UInt64, at now: Moment) {
    guard self.digest != digest else { return }
    self.digest = digest
    lease.hurry(at: now)
    advance(to: now)
  }

  /// Joins again as another incarnation: this one was evicted.
  mutating func rejoin(at now: Moment) {
    for partition in held.keys.sorted() { effects.append(.abandon(partition)) }
    held = [:]
    lease = Lease()
    namesakeSeen = nil
    effects.append(.log(.wasEvicted))
    if standing == .leaving {
      standing = .ended
      effects.append(.left)
      return
    }
    incarnation &+= 1
    standing = .joining
    join(at: now)
  }

  // MARK: - The own lease

  private mutating func renew(at now: Moment) {
    guard lease.dueAt <= now, !writes.isBusy(.member(name)) else { return }
    writePresence(at: now)
  }

  /// A renewal that was sent at `moment` was stored.
  mutating func renewed(sentAt moment: Moment, at now: Moment) {
    lease.renewed(sentAt: moment)
    guard lease.isTrusted(settings, at: now) else { return lease.hurry(at: now) }
    for (partition, state) in held.sorted(by: { $0.key < $1.key }) {
      switch state {
      case .mayConnect(let epoch, let since) where since <= moment:
        held[partition] = .connecting(epoch: epoch)
        effects.append(.connect(partition))
      case .mayDrive(let epoch, let since) where since <= moment:
        held[partition] = .driving(epoch: epoch)
        effects.append(.drive(partition))
      case .mayConnect, .mayDrive: lease.hurry(at: now)
      default: break
      }
    }
  }

  // MARK: - Other members

  /// The broker has published a member's will: its connection ended.
  package mutating func connectionEnded(of member: String, at now: Moment) {
    guard member != name else { return }
    view.suspect(member, at: now)
  }

  private func evictionDue(of member: String) -> Moment? {
    view.endOfLease(of: member, settings)?.advanced(by: turn)
  }

  private mutating func evictSilent(at now: Moment) {
    guard standing == .member || standing == .leaving, lease.isTrusted(settings, at: now) else {
      return
    }
    for (member, peer) in view.peers.sorted(by: { $0.key < $1.key }) where member != name {
      let key = RecordKey.member(member)
      guard !writes.isBusy(key), let due = evictionDue(of: member), due <= now else {
        continue
      }
      var record = peer.record
      record.state = .evicted
      record.beat += 1
      let isSuspected = peer.suspectedAt != nil
      effects.append(.log(.evicting(member: member, isSuspected: isSuspected)))
      write(key, .member(record), at: now)
    }
  }
}

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

// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Commands
import Configuration
import Devices
import Durability
import Engine
import GatewayCore
import LastOut
import Operations
import Values

/// Performing what membership and logs decide.
extension ClusterMember {
  // MARK: - Membership

  func perform(_ effect: MembershipEffect, at now: Moment) {
    switch effect {
    case .write(let key, let record, let predecessor):
      engine.write(key, record, after: predecessor) { [weak self] outcome in
        self?.membership.wrote(key, outcome, at: EventLoop.now())
        self?.passed.ownersChanged()
      }
    case .read(let key): read(key)
    case .open(let partition, let epoch):
      // What the owner before showed of its devices does not count any more.
      setConnected(false, partition, at: now)
      store.open(partition, epoch: epoch)
    case .connect(let partition): sessions.connect(partition)
    case .drive(let partition): drive(partition, at: now)
    case .pause(let partition): setConnected(false, partition, at: now)
    case .handOver(let partition):
      handingOver.insert(partition)
      setDriven(false, partition)
      setConnected(false, partition, at: now)
    case .abandon(let partition): forget(partition, at: now)
    case .log(let notice): say(notice)
    case .refuse(let name):
      onRefusal?(
        "cluster: another gateway is the member '\(name)' of the cluster '\(settings.name)':"
          + " cluster.member must be unique"
      )
    case .left: left()
    }
  }

  private func read(_ key: RecordKey) {
    engine.read(key) { [weak self] found in
      self?.membership.read(key, found, at: EventLoop.now())
      self?.passed.ownersChanged()
    }
  }

  private func say(_ notice: MembershipNotice) {
    switch notice {
    case .joined:
      context.log.info("Joined the cluster", ["member": name, "cluster": settings.name])
    case .evicting(let member, let isSuspected):
      context.log.warning(
        "Another member is silent: its partitions are free",
        [
          "member": member,
          "reason": isSuspected ? "its connection to the broker ended" : "no renewal",
        ]
      )
    case .wasEvicted:
      context.log.warning("This member was silent for too long and joins again", ["member": name])
    case .otherDevices(let digest, let expected):
      context.log.error(
        "This member has other device files than most: it drives nothing until they are the same",
        ["digest": Self.text(digest), "expected": Self.text(expected)]
      )
    case .sameDevices:
      context.log.info("This member has the same device files as most", ["member": name])
    }
  }

  static func text(_ digest: UInt64) -> String { String(digest, radix: 16) }

  // MARK: - Partitions

  private func drive(_ partition: Partition, at now: Moment) {
    let wasDriven = context.places?.drives(partition) ?? false
    setDriven(true, partition)
    setConnected(true, partition, at: now)
    guard !wasDriven else { return }
    context.log.debug("Drives a partition", ["partition": "\(partition)"])
    onOwnership?(partition, true)
    rows.partitionTaken(context.places?.devices(of: partition) ?? [])
    passed.ownersChanged()
  }

  private func setDriven(_ isDriven: Bool, _ partition: Partition) {
    let wasDriven = context.places?.drives(partition) ?? false
    context.places?.set(partition, isDriven: isDriven)
    if wasDriven != isDriven { haveDevicesMoved = true }
    if wasDriven, !isDriven { onOwnership?(partition, false) }
  }

  private func setConnected(_ isConnected: Bool, _ partition: Partition, at now: Moment) {
    let isDriven = context.places?.drives(partition) ?? false
    for device in context.places?.devices(of: partition) ?? [] {
      if isDriven {
        take(device, isConnected: isConnected, at: now)
      } else {
        leave(device, at: now)
      }
    }
    if isDriven, isConnected { mqtt.sessionConnected(partition, at: now) }
  }

  /// This member drives a device, whose session is there or not.
  func take(_ device: Int, isConnected: Bool, at now: Moment) {
    context.core.setElsewhere(false, device: device)
    let partition = context.places?.partition(ofDevice: device)
    context.core.setBehind(partition.map(passed.isBusy) ?? false, device: device)
    context.core.sessionChanged(ofDevice: device, isUp: isConnected, at: now)
  }

  /// Another member drives a device, or nobody does.
  func leave(_ device: Int, at now: Moment) {
    context.core.setElsewhere(true, device: device)
    context.core.sessionChanged(ofDevice: device, isUp: false, at: now)
  }

  private func keys(of partition: Partition) -> [KeyIndex] {
    (context.places?.devices(of: partition) ?? []).flatMap { device in
      context.registry.indices(ofDevice: device).map { KeyIndex($0) }
    }
  }

  /// Another member has a partition, or will.
  private func forget(_ partition: Partition, at now: Moment) {
    sessions.close(partition)
    let (unanswered, waiting) = context.core.forget(keys(of: partition), at: now)
    for event in unanswered { onRejected?(event) }
    for origin in waiting { onWaitEnd?(origin) }
    store.close(partition)
    handingOver.remove(partition)
    setDriven(false, partition)
    setConnected(false, partition, at: now)
  }

  /// Ends the connections of partitions that are given away, and gives away what is stored.
  ///
  /// - Returns: Whether anything changed.
  func finishHandingOver(at now: Moment) -> Bool {
    var didChange = false
    for partition in handingOver.sorted() {
      // What is published from now on is the next owner's.
      if let session = sessions[partition], session.isIdle {
        sessions.close(partition)
        didChange = true
      }
      guard sessions[partition] == nil, context.core.isStored(keys(of: partition), at: now) else {
        continue
      }
      forget(partition, at: now)
      membership.handedOver(partition, at: now)
      didChange = true
    }
    return didChange
  }

  // MARK: - The store

  /// A partition's log was read: this member takes over what earlier owners left.
  func opened(_ partition: Partition, epoch: UInt64, _ entries: [JournalEntry]) {
    let now = EventLoop.now()
    let decoded = entries.map { entry in
      var entry = entry
      if let value = DurableValue(entry.content.bytes) { entry.content = .unwritten(value) }
      return entry
    }
    context.core.takeOver(decoded, at: now)
    store.adopted(partition, epoch: epoch)
    membership.opened(partition, epoch: epoch, at: now)
  }
}

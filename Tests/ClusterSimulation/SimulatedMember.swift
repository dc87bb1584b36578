// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Commands
import Devices
import Durability
import GatewayCore
import JSON
import LastOut
import LastOutTesting
import Values

/// One process of a member: the ``Membership``, the ``PartitionLogs``, the ``SessionSchedule``, the
/// ``PassedRequests`` and the ``GatewayCore`` that ship, with what the host does between them.
final class SimulatedMember {
  let name: String
  /// Counts the processes of all members.
  let life: Int
  /// Whether it is of a later version, whose frames the others cannot read.
  let isLater: Bool
  unowned let world: ClusterLife
  private(set) var membership: Membership
  private var logs: PartitionLogs
  var passed: PassedRequests
  /// What clients have asked here, and was passed on.
  var forwarded: [UInt64: ClientRequest] = [:]
  /// Requests without an end, by the order of their execution.
  var executing: [UInt64: Executing] = [:]
  /// The newest stop that was executed here, by its key.
  var stops: [KeyIndex: Int] = [:]
  var core: GatewayCore
  private var schedule = SessionSchedule()
  private var connections: [Partition: SimulatedSessions.Connection] = [:]
  /// The connection of each partition that was begun last and has not ended, and those that the
  /// broker has not accepted.
  private var attempts: [Partition: Int] = [:]
  private var connecting: Set<Partition> = []
  private var attemptCount = 0
  /// Partitions that are driven or were since they were taken: their changes are accepted.
  private(set) var accepting: Set<Partition> = []
  private var handingOver: Set<Partition> = []
  /// Messages without an answer, with their partitions.
  private var outstanding: [UInt64: Partition] = [:]
  /// The clock of this machine is so much ahead.
  private let ahead: Duration
  private(set) var isUp = true
  /// Until when the process is stopped; what arrives meanwhile waits.
  private var pausedUntil = Moment.zero
  private var inbox: [() -> Void] = []
  private var alarm: Moment?
  /// How many turns in a row have left the core something to do at once.
  private var hurries = 0
  /// When the log of a partition could not be read.
  private var unreadable: [Partition: Moment] = [:]
  /// How work on the logs has ended, for the core.
  private var results: [JournalResult] = []

  init(_ name: String, life: Int, isLater: Bool, in world: ClusterLife) {
    self.name = name
    self.life = life
    self.isLater = isLater
    self.world = world
    let count = ClusterLife.partitions
    ahead = .milliseconds(life * 977)
    membership = Membership(
      name: name,
      incarnation: UInt64(life) << 32,
      digest: 1,
      partitions: count
    )
    var logSettings = LogSettings()
    // Short, so that snapshots have several frames.
    (logSettings.rowsPerFrame, logSettings.longAfter, logSettings.keptBehind) = (2, 12, 20)
    logs = PartitionLogs(member: name, settings: logSettings) { key in
      Partition(of: String(key.prefix { $0 != "/" }), count: count)
    }
    passed = PassedRequests(member: name, after: UInt64(life) << 32)
    core = GatewayCore(
      registry: world.registry,
      settings: GatewayCoreSettings(),
      identifiers: CommandIdentifiers(
        wallMilliseconds: 1_800_000_000_000,
        now: .zero,
        session: UInt16(truncatingIfNeeded: life)
      )
    )
    core.isWatched = true
    core.openStore(JournalPlan(contents: JournalContents()), path: "cluster", isShared: true)
    core.connectionChanged(isUp: true, at: now)
    core.retainedMessagesCompleted(at: now)
    for partition in ClusterLife.all { setOnline(false, of: partition) }
    world.time.plan(within: 1...50) { [self] in receive { self.readAll() } }
  }

  var now: Moment { world.time.now.advanced(by: ahead) }

  private var clock: JournalClock {
    let milliseconds = Int64(now.nanoseconds / 1_000_000)
    return JournalClock(
      moment: now,
      stamps: JournalStamps(
        boot: BootIdentifier(high: 1, low: UInt64(life)),
        bootMilliseconds: milliseconds,
        wallMilliseconds: 1_800_000_000_000 + milliseconds
      )
    )
  }

  var isPaused: Bool { world.time.now < pausedUntil }

  // MARK: - Faults

  func kill() {
    isUp = false
    inbox = []
    world.sessions.endAll(of: Array(connections.values))
    connections = [:]
  }

  func pause(for duration: Duration) {
    pausedUntil = max(pausedUntil, world.time.now.advanced(by: duration))
    world.time.plan(at: pausedUntil) { [self] in
      guard isUp, !isPaused else { return }
      let waiting = inbox
      inbox = []
      for run in waiting where isUp { run() }
      turn()
    }
  }

  // MARK: - The loop

  /// Hands something that arrives to the loop, at once or when the process runs again.
  func receive(_ run: @escaping () -> Void) {
    guard isUp else { return }
    if isPaused { return inbox.append(run) }
    run()
    turn()
  }

  func turn() {
    guard isUp, !isPaused else { return }
    for order in membership.dequeueEffects() { perform(order) }
    for effect in schedule.advance(to: now) where isUp { perform(effect) }
    guard isUp else { return }
    membership.advance(to: now)
    logs.advance(to: now)
    var host = HostState()
    host.room = 1
    _ = performOrders()
    repeat {
      for result in results { core.storeFinished(result, at: now) }
      results = []
      while isUp, let effect = core.nextEffect(at: now, host: host) { perform(effect) }
    } while isUp && performOrders()
    guard isUp else { return }
    arm()
  }

  /// Performs what membership and logs decide, as `ClusterMember` does: a partition that is lost is
  /// forgotten before the core is told that work has ended, some of which was not stored.
  ///
  /// - Returns: Whether there was anything.
  private func performOrders() -> Bool {
    var didWork = false
    while isUp {
      let orders = membership.dequeueEffects()
      for order in orders { perform(order) }
      let work = logs.dequeueEffects()
      for effect in work { perform(effect) }
      let isOver = finishHandingOver()
      let havePassed = advancePassed(membership.view)
      if orders.isEmpty, work.isEmpty, !isOver, !havePassed { break }
      didWork = true
    }
    return didWork
  }

  private func arm() {
    let coreDue = core.nextDeadline(after: now)
    hurries = coreDue.map { $0 <= now } ?? false ? hurries + 1 : 0
    if hurries > 100 { world.breach("\(name) wakes up at once again and again") }
    let due = [
      coreDue, membership.nextDeadline(after: now), logs.nextDeadline, passed.nextDeadline,
      schedule.nextDeadline,
    ].compactMap(\.self).min()
    guard let due, due != alarm else { return }
    alarm = due
    let wait = max(.microseconds(100), now.duration(to: due))
    world.time.plan(after: wait) { [self] in
      guard alarm == due else { return }
      alarm = nil
      receive {}
    }
  }

  // MARK: - Records

  /// Reads every record, at the start and after what watches them was lost.
  func readAll() {
    guard world.engine.reaches(name) else {
      world.time.plan(within: 200...600) { [self] in receive { self.readAll() } }
      return
    }
    for (key, record, revision) in world.engine.snapshot { observe(key, record, revision) }
    membership.readAll(at: now)
  }

  /// Reads the newest records again, as it does all the time: the watch may have missed some.
  func readNewest() {
    guard world.engine.reaches(name) else {
      world.time.plan(within: 200...600) { [self] in receive { self.readNewest() } }
      return
    }
    for (key, record, revision) in world.engine.newest { observe(key, record, revision) }
  }

  func observe(_ key: RecordKey, _ record: ClusterRecord, _ revision: UInt64) {
    if membership.observed(key, record, revision: revision, at: now) { passed.ownersChanged() }
  }

  func willSeen(of member: String) { membership.connectionEnded(of: member, at: now) }

  func leave() { membership.leave(at: now) }

  private func perform(_ effect: MembershipEffect) {
    guard isUp else { return }
    switch effect {
    case .write(.member, _, _), .log: break
    default: world.say("  \(name): \(effect)")
    }
    switch effect {
    case .write(let key, let record, let predecessor):
      world.engine.write(key, record, after: predecessor, by: name) { [self] outcome in
        receive {
          self.membership.wrote(key, outcome, at: self.now)
          self.passed.ownersChanged()
        }
      }
    case .read(let key):
      world.engine.read(key, by: name) { [self] found in
        receive {
          self.membership.read(key, found.map { ($0?.record, $0?.revision ?? 0) }, at: self.now)
          self.passed.ownersChanged()
        }
      }
    case .open(let partition, let epoch): logs.open(partition, epoch: epoch)
    case .connect(let partition): schedule.connect(partition, at: now)
    case .drive(let partition):
      accepting.insert(partition)
      setOnline(true, of: partition)
      passed.ownersChanged()
    case .pause(let partition): setOnline(false, of: partition)
    case .handOver(let partition):
      handingOver.insert(partition)
      accepting.remove(partition)
      setOnline(false, of: partition)
    case .abandon(let partition): forget(partition)
    case .log(let notice): world.noticed(notice)
    case .refuse: world.breach("\(name) is refused, although no other has its name")
    case .left: world.left(self)
    }
  }

  // MARK: - Partitions

  private func perform(_ effect: SessionEffect) {
    switch effect {
    case .start(let partition): connect(partition)
    case .failed(let partition): disconnected(partition)
    }
  }

  private func connect(_ partition: Partition) {
    guard isUp else { return }
    guard let epoch = membership.held[partition]?.epoch else {
      return world.breach("\(name) connects \(partition), which is not its own")
    }
    attemptCount += 1
    let attempt = attemptCount
    attempts[partition] = attempt
    connecting.insert(partition)
    if connecting.count > SessionSchedule.connectsAtOnce {
      world.breach("\(name) makes \(connecting.count) connections at a time")
    }
    let pause = world.meetTrouble(self, .beforeConnection, of: partition, epoch: epoch)
    guard isUp else { return }
    world.sessions.connect(
      partition,
      by: name,
      epoch: epoch,
      after: pause,
      onConnected: { [self] connection in
        receive {
          guard self.attempts[partition] == attempt else {
            return self.world.sessions.close(connection)
          }
          guard case .connecting = self.membership.held[partition] else {
            self.closeSession(partition)
            return self.world.sessions.close(connection)
          }
          self.connecting.remove(partition)
          self.connections[partition] = connection
          self.schedule.connected(partition, at: self.now)
          self.membership.connected(partition, at: self.now)
          self.world.meetTrouble(self, .beforeMessage, of: partition, epoch: epoch)
        }
      },
      onEnd: { [self] in
        receive { if self.attempts[partition] == attempt { self.sessionEnded(partition) } }
      }
    )
  }

  private func sessionEnded(_ partition: Partition) {
    endAttempt(of: partition)
    if schedule.ended(partition, at: now) != nil { disconnected(partition) }
  }

  private func closeSession(_ partition: Partition) {
    schedule.close(partition)
    endAttempt(of: partition)
    if let connection = connections.removeValue(forKey: partition) {
      world.sessions.close(connection)
    }
  }

  private func endAttempt(of partition: Partition) {
    attempts[partition] = nil
    connecting.remove(partition)
  }

  private func disconnected(_ partition: Partition) {
    world.say("  \(name): the session of \(partition) has ended")
    connections[partition] = nil
    loseOutstanding(of: partition)
    membership.disconnected(partition, at: now)
  }

  private func loseOutstanding(of partition: Partition) {
    for token in outstanding.keys.sorted() where outstanding[token] == partition {
      outstanding[token] = nil
      core.commandFinished(token, .lost, at: now)
    }
  }

  private func forget(_ partition: Partition, isHandedOver: Bool = false) {
    setOnline(false, of: partition)
    loseOutstanding(of: partition)
    let (unanswered, waiting) = core.forget(world.keys(of: partition), at: now)
    for event in unanswered {
      if isHandedOver {
        world.breach("\(name) hands \(partition) over before it has answered \(event.number)")
      }
      world.unanswered(event)
      reply(to: event.origin, event, isAnswer: true, isFinal: true)
    }
    for origin in waiting { reply(to: origin, nil, isAnswer: false, isFinal: true) }
    closeSession(partition)
    logs.close(partition)
    accepting.remove(partition)
    handingOver.remove(partition)
    setOnline(false, of: partition)
  }

  /// - Returns: Whether a partition was handed over.
  private func finishHandingOver() -> Bool {
    var didChange = false
    for partition in handingOver.sorted()
    where core.isStored(world.keys(of: partition), at: now) {
      forget(partition, isHandedOver: true)
      membership.handedOver(partition, at: now)
      didChange = true
    }
    return didChange
  }

  private func setOnline(_ isOnline: Bool, of partition: Partition) {
    for device in world.devices(of: partition) {
      core.setElsewhere(!accepting.contains(partition), device: device)
      core.setBehind(passed.isBusy(partition), device: device)
      core.sessionChanged(ofDevice: device, isUp: isOnline, at: now)
    }
  }

  // MARK: - Logs

  private func perform(_ effect: LogEffect) {
    guard isUp else { return }
    world.say("  \(name): \(effect.summary)")
    switch effect {
    case .append(let partition, let frame, let predecessor):
      world.engine.append(
        frame,
        to: partition,
        after: predecessor,
        by: name,
        isLater: isLater
      ) { [self] outcome in
        receive {
          self.logs.appended(partition, epoch: frame.epoch, outcome, clock: self.clock)
        }
      }
    case .readLast(let partition, let epoch):
      world.engine.readLast(of: partition, by: name, isLater: isLater) { [self] end in
        receive { self.logs.readLast(partition, epoch: epoch, end, clock: self.clock) }
      }
    case .read(let partition, let epoch, let first, let last):
      world.engine.readLog(
        of: partition,
        from: first,
        through: last,
        by: name,
        isLater: isLater
      ) { [self] part in
        receive { self.logs.read(partition, epoch: epoch, part, clock: self.clock) }
      }
    case .purge(let partition, let first):
      world.engine.purge(partition, before: first, by: name)
    case .finished(let result): results.append(result)
    case .opened(let partition, let epoch, let entries):
      core.takeOver(entries, at: now)
      logs.adopted(partition, epoch: epoch)
      membership.opened(partition, epoch: epoch, at: now)
    case .lost(let partition, let epoch): membership.lost(partition, epoch: epoch, at: now)
    case .unreadable(let partition, let epoch):
      world.couldNotRead()
      if let before = unreadable[partition], before.duration(to: now) < .seconds(60) {
        world.breach("\(name) takes \(partition) again, whose log it cannot read")
      }
      unreadable[partition] = now
      membership.openFailed(partition, epoch: epoch, at: now)
    case .shortened(let partition): world.shortened(partition, of: self)
    }
  }

  // MARK: - Commands

  /// Whether changes of a partition's devices are accepted here.
  func accepts(_ partition: Partition) -> Bool {
    isUp && !isPaused && accepting.contains(partition)
  }

  private func perform(_ effect: Effect) {
    switch effect {
    case .write(let work): logs.submit(work, clock: clock)
    case .readClock: core.clockRead(clock)
    case .publish(let publish): send(publish)
    case .emit(let event):
      world.emitted(event)
      let isAnswer = event.phase == .accepted || event.phase == .rejected
      reply(to: event.origin, event, isAnswer: isAnswer, isFinal: event.isFinal)
    case .passOn(let change): passOn(change)
    case .publishState, .requestState, .forward, .record, .stateChanged, .definitionsReplaced,
      .reloaded, .storeHealth, .resumed, .log, .closeStore, .sayOffline, .end,
      .endElsewhere:
      break
    }
  }

  private func send(_ publish: CommandPublish) {
    let device = world.registry[publish.keys[0]].device
    let partition = world.partition(ofDevice: Int(device))
    guard let connection = connections[partition], let state = membership.held[partition] else {
      return world.breach("\(name) sends without a session")
    }
    outstanding[publish.token] = partition
    let payload = world.sent(publish, stop: stops[publish.keys[0]])
    world.say("  \(name): sends \(publish.topic) \(String(decoding: payload, as: UTF8.self))")
    world.sessions.publish(
      payload,
      to: publish.topic,
      over: connection,
      by: name,
      epoch: state.epoch,
      after: .milliseconds(world.time.random.within(1...20))
    ) { [self] in
      receive {
        guard self.outstanding.removeValue(forKey: publish.token) != nil else { return }
        self.core.commandFinished(publish.token, .acknowledged, at: self.now)
      }
    }
  }

  // MARK: - For checks

  var drivenPartitions: [Partition] {
    ClusterLife.all.filter { membership.drives($0) && !handingOver.contains($0) }
  }
}

extension LogEffect {
  /// A short text for the trace.
  fileprivate var summary: String {
    switch self {
    case .append(let partition, let frame, let predecessor):
      "append to \(partition) \(frame.kind) after \(predecessor.revision): \(frame.puts.map(\.key))"
        + " -\(frame.removals)"
    case .readLast(let partition, _): "read the end of \(partition)"
    case .read(let partition, _, let first, let last): "read \(partition) \(first) to \(last)"
    case .purge(let partition, let first): "purge \(partition) before \(first)"
    case .finished(let result): "finished \(result)"
    case .opened(let partition, let epoch, let entries):
      "opened \(partition) in \(epoch): \(entries.map(\.key))"
    case .lost(let partition, _): "lost \(partition)"
    case .unreadable(let partition, _): "cannot read \(partition)"
    case .shortened(let partition): "\(partition) is shorter"
    }
  }
}

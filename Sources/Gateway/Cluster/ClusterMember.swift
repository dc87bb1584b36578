// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Commands
import Configuration
import Control
import Devices
import Durability
import Engine
import GatewayCore
import Journal
import JSON
import LastOut
import MQTT
import Operations

/// This gateway as a member of a cluster: performs what ``Membership`` decides, on the cluster's
/// engine, the sessions at the broker, and the core.
final class ClusterMember {
  let context: GatewayContext
  let mqtt: MQTTSurface
  let sessions: PartitionSessions
  let engine: ClusterEngine
  let monitor: ServerMonitor
  let name: String
  let settings: ClusterConfiguration
  let peers: PeerLink
  let passed: RequestForwarder
  let rows: PeerRows
  let events: PeerEvents
  private(set) var requesters: [UInt64: PeerRequester] = [:]
  private var lastRequester = ClusterMember.lowestNumber
  /// Requesters of other members have these numbers and higher ones, and lower ones than those over
  /// HTTP.
  static let lowestNumber: UInt64 = 1 << 62

  var membership: Membership
  let store: PartitionStore
  /// Partitions that are being given to other members.
  var handingOver: Set<Partition> = []
  private var timer: LoopTimer?
  private var armedAt: Moment?
  /// Whether the gateway ends: `left` follows.
  private(set) var isLeaving = false
  private(set) var hasLeft = false
  /// Whether this member drives other devices than when lanes were shared last.
  var haveDevicesMoved = false
  /// What the log was told last of the engine.
  private var reportedProblem: String?
  /// How often in a row a session ends soon before another cluster is suspected, and how often that
  /// is logged.
  private static let conflictingLives = 4
  private var conflictPace = LogPace()
  /// When another cluster was suspected last, and for how long `status` says so.
  private var conflictAt: Moment?
  private static let conflictMemory = Duration.seconds(60)
  private var clockPace = LogPace()

  /// Executes a request of another member.
  var onRequest: ((ControlRequest, PeerRequester) -> Void)?
  /// This gateway cannot be a member, and why.
  var onRefusal: ((String) -> Void)?
  /// A partition is driven here from now on, or not any more.
  var onOwnership: ((Partition, _ isDriven: Bool) -> Void)?
  /// An accepted change ends without being stored.
  var onRejected: ((CommandEvent) -> Void)?
  /// Someone waits for phases of a command of which this gateway learns no more.
  var onWaitEnd: ((ChangeOrigin) -> Void)?

  /// `digest` is that of the device files.
  ///
  /// - Throws: When libnats is missing.
  init(
    _ settings: ClusterConfiguration,
    _ context: GatewayContext,
    mqtt: MQTTSurface,
    sessions: PartitionSessions,
    digest: UInt64
  ) throws(EngineRefusal) {
    self.settings = settings
    self.context = context
    self.mqtt = mqtt
    self.sessions = sessions
    name = settings.member
    engine = try ClusterEngine(
      EngineSettings(settings),
      member: settings.member,
      loop: context.loop,
      log: context.log
    )
    do throws(OperationsError) {
      monitor = try ServerMonitor(settings.monitors, loop: context.loop)
    } catch {
      throw EngineRefusal(error.description)
    }
    membership = Membership(
      name: settings.member,
      incarnation: .random(in: 1...UInt64.max / 2),
      digest: digest,
      partitions: settings.partitions
    )
    let count = settings.partitions
    store = PartitionStore(engine, member: settings.member, clock: SystemClock.read) { key in
      Partition(of: String(key.prefix { $0 != "/" }), count: count)
    }
    peers = PeerLink(member: settings.member, engine: engine)
    passed = RequestForwarder(context, peers: peers, member: settings.member)
    rows = PeerRows(context, member: settings.member, engine: engine)
    events = PeerEvents(context, member: settings.member, engine: engine)
    do throws(OperationsError) {
      // The step after the batch does the work.
      timer = try context.loop.makeTimer(named: "cluster") {}
    } catch {
      throw EngineRefusal(error.description)
    }
    setHandlers()
  }

  /// Starts connecting to the engine; nothing is driven before the records were read.
  func start() {
    let now = EventLoop.now()
    if settings.monitors.isEmpty { diskWritesChanged() }
    var plan = JournalPlan.Settings()
    plan.commit = .milliseconds(50)
    context.core.openStore(
      JournalPlan(settings: plan, contents: JournalContents()),
      path: "cluster \(settings.name)",
      isShared: true
    )
    for device in context.registry.deviceNumbers { leave(device, at: now) }
    engine.start()
  }

  func close() {
    sessions.closeAll()
    engine.close()
  }

  private func setHandlers() {
    monitor.onChange = { [unowned self] in diskWritesChanged() }
    engine.onRecord = { [unowned self] key, record, revision in
      let now = EventLoop.now()
      if membership.observed(key, record, revision: revision, at: now) { passed.ownersChanged() }
    }
    engine.onRecordsRead = { [unowned self] in
      membership.readAll(at: EventLoop.now())
      rows.sayHello()
      monitor.ask()
    }
    store.onOpened = { [unowned self] in opened($0, epoch: $1, $2) }
    store.onLost = { [unowned self] in membership.lost($0, epoch: $1, at: EventLoop.now()) }
    store.onUnreadable = { [unowned self] in
      membership.openFailed($0, epoch: $1, at: EventLoop.now())
    }
    store.onShortened = { [unowned self] in
      context.log.error(
        "The cluster's engine has lost accepted values: those that are not sent are written again",
        ["partition": "\($0)"]
      )
    }
    store.onClockDifference = { [unowned self] in clockDiffers(by: $0) }
    store.onClosing = { [unowned self] in leave() }
    engine.onRefusal = { [unowned self] in onRefusal?($0.description) }
    engine.onProblem = { [unowned self] in engineChanged($0) }
    engine.onMessage = { [unowned self] in receive($0) }
    engine.onBroadcast = { [unowned self] in receiveBroadcast($0) }
    peers.onUndelivered = { [unowned self] in passed.undelivered($0) }
    mqtt.onMemberStatus = { [unowned self] member, isOnline in
      guard !isOnline else { return }
      membership.connectionEnded(of: member, at: EventLoop.now())
    }
    mqtt.isLastMember = { [unowned self] in
      !membership.view.peers.contains { $0.key != name && $0.value.record.state.isPresent }
    }
    sessions.onConnected = { [unowned self] partition in
      guard case .connecting = membership.held[partition] else { return sessions.close(partition) }
      membership.connected(partition, at: EventLoop.now())
    }
    sessions.onEnded = { [unowned self] in sessionEnded($0, $1) }
    sessions.subscriptions = { [unowned self] in subscriptions[$0] }
  }

  /// What the sessions subscribe to.
  lazy var subscriptions = makeSubscriptions()

  private func makeSubscriptions() -> ClusterSubscriptions {
    ClusterSubscriptions(
      context.configuration,
      context.registry,
      partitions: settings.partitions
    )
  }

  // MARK: - After each batch

  /// Performs what was decided.
  ///
  /// - Returns: Whether the core may have something new to do.
  func advance(to now: Moment) -> Bool {
    // What was abandoned is not connected first.
    let first = membership.dequeueEffects()
    for order in first { perform(order, at: now) }
    sessions.advance(to: now)
    if let due = membership.nextDeadline(after: now), due <= now { membership.advance(to: now) }
    var didWork = !first.isEmpty
    while true {
      let orders = membership.dequeueEffects()
      for order in orders { perform(order, at: now) }
      let hasStored = store.advance(to: now)
      let isOver = finishHandingOver(at: now)
      let havePassed = passed.advance(
        to: now,
        membership.view,
        isEngineReachable: engine.isConnected
      )
      if orders.isEmpty, !hasStored, !isOver, !havePassed { break }
      didWork = true
    }
    if haveDevicesMoved {
      haveDevicesMoved = false
      shareLanes(at: now)
    }
    return didWork
  }

  /// Sends what the batch has brought for other members, and arms the timer.
  func endBatch(at now: Moment) {
    rows.flush(at: now)
    events.flush(at: now)
    peers.flush()
    let due = [
      membership.nextDeadline(after: now), store.nextDeadline, sessions.nextDeadline,
      passed.nextDeadline, rows.nextDeadline, events.nextDeadline,
    ].compactMap(\.self).min()
    guard due != armedAt || due.map({ $0 <= now }) ?? false else { return }
    armedAt = due
    timer?.arm(at: due)
  }

  // MARK: - The end

  /// Gives every partition to the other members; the store is closed when that is done.
  private func leave() {
    guard !isLeaving else { return }
    isLeaving = true
    if hasLeft { return store.close() }
    membership.leave(at: EventLoop.now())
  }

  func left() {
    hasLeft = true
    if isLeaving { store.close() }
  }

  // MARK: - Reload

  /// The device files were read again.
  func devicesReplaced(digest: UInt64) {
    let before = subscriptions
    subscriptions = makeSubscriptions()
    let now = EventLoop.now()
    for device in context.registry.deviceNumbers {
      guard let partition = context.places?.partition(ofDevice: device) else { continue }
      if !(context.places?.drives(partition) ?? false) {
        leave(device, at: now)
      } else {
        take(device, isConnected: membership.drives(partition), at: now)
      }
    }
    haveDevicesMoved = true
    sessions.replaceSubscriptions { before[$0] }
    membership.devicesChanged(digest: digest, at: now)
  }

  /// Shares the limits of lanes among the members, in proportion to the devices that each drives.
  func shareLanes(at now: Moment) {
    let limits = context.configuration.lanes
    guard !limits.isEmpty, let places = context.places else { return }
    var counts: [String: (own: Int, all: Int)] = [:]
    for device in context.registry.deviceNumbers {
      guard let lane = context.registry.lane(ofDevice: device) else { continue }
      counts[lane, default: (0, 0)].all += 1
      if places.drives(device: device) { counts[lane, default: (0, 0)].own += 1 }
    }
    let shares = limits.map { name, limit in
      (name, limit.share(counts[name]?.own ?? 0, of: counts[name]?.all ?? 0))
    }
    context.core.setLaneLimits(Dictionary(uniqueKeysWithValues: shares), at: now)
  }

  // MARK: - The engine and the broker

  private func engineChanged(_ problem: String?) {
    guard problem != reportedProblem else { return }
    reportedProblem = problem
    if let problem {
      context.log.error("The cluster's engine cannot be used", ["reason": problem])
    } else {
      context.log.info("The cluster's engine can be used", ["server": engine.server])
      rows.sayHello()
      // A server that came back may have other settings.
      monitor.ask()
    }
  }

  private func diskWritesChanged() {
    switch monitor.writes {
    case .beforeAnswers: break
    case .later(let server, let how):
      context.log.error(
        "A loss of power may lose accepted values: a server of the cluster's engine must have sync_interval: always",
        ["server": server, "reason": how]
      )
    case .unknown(let reason):
      context.log.warning(
        "It is not known whether the cluster's engine writes to its disks before it acknowledges",
        ["reason": reason]
      )
    }
  }

  private func clockDiffers(by difference: Duration) {
    guard clockPace.record(at: EventLoop.now()) != nil else { return }
    let seconds = difference.components.seconds
    context.log.warning(
      "The clocks of this machine and of a server of the cluster's engine differ: set both",
      ["this machine": "\(seconds.magnitude) s \(seconds < 0 ? "behind" : "ahead")"]
    )
  }

  /// The gateway's own connection to the broker was made or ended.
  func brokerChanged(isUp: Bool) {
    membership.brokerChanged(isReachable: isUp, at: EventLoop.now())
  }

  private func sessionEnded(_ partition: Partition, _ shortLives: Int) {
    let now = EventLoop.now()
    // A member that takes a partition over ends its session once.
    if shortLives >= Self.conflictingLives, membership.view.owner(of: partition) == name {
      conflictAt = now
      if conflictPace.record(at: now) != nil {
        context.log.error(
          "A session ends as soon as it is made: has another cluster at this broker the same name?",
          ["cluster": settings.name, "partition": "\(partition)"]
        )
      }
    }
    membership.disconnected(partition, at: now)
  }

  /// Whether another cluster of the same name seems to use the broker.
  func isContested(at now: Moment) -> Bool {
    conflictAt.map { $0.duration(to: now) < Self.conflictMemory } ?? false
  }

  // MARK: - Other members

  private func receive(_ bytes: [UInt8]) {
    guard let message = PeerMessage(bytes) else {
      return context.log.warning("A message of another member cannot be read", [:])
    }
    for entry in message.entries {
      switch entry.kind {
      case .request: perform(entry, from: message.sender)
      case .reply: passed.receive(entry)
      case .moved: passed.moved(entry.number)
      }
    }
  }

  /// Executes a request that another member has passed on.
  private func perform(_ entry: PeerMessage.Entry, from sender: String) {
    guard let request = try? ControlRequest(line: entry.line.span), accepts(request) else {
      return peers.append(.init(kind: .moved, number: entry.number), to: sender)
    }
    lastRequester += 1
    let requester = PeerRequester(
      number: lastRequester,
      member: sender,
      request: entry.number,
      link: peers,
      onEnd: { [weak self] in self?.requesters[$0.number] = nil }
    )
    requesters[lastRequester] = requester
    onRequest?(request, requester)
    requester.performed()
  }

  /// Whether a request that was passed on is for this member.
  private func accepts(_ request: ControlRequest) -> Bool {
    guard !context.core.isShuttingDown else { return false }
    guard let device = request.device(in: context.registry) else { return true }
    return context.places?.drives(device: device) ?? false
  }

  private func receiveBroadcast(_ bytes: [UInt8]) {
    guard var broadcast = PeerBroadcast(bytes), broadcast.sender != name else { return }
    switch broadcast.kind {
    case .hello: rows.sendAll()
    case .rows:
      rows.receive(&broadcast.content) { [self] device in
        context.places?.partition(ofDevice: device).map {
          membership.held[$0] == nil && membership.view.owner(of: $0) == broadcast.sender
        } ?? false
      }
    case .wantsEvents: events.areWanted(by: broadcast.sender, at: EventLoop.now())
    case .events: events.receive(&broadcast.content)
    }
  }
}

extension ControlRequest {
  /// The device that the request is about; `nil` for several, and for one that does not exist.
  func device(in registry: Registry) -> Int? {
    switch operation {
    case .set, .step, .toggle, .flush, .cancel, .get, .pending, .describe, .log: break
    case .scene, .watch, .record, .reload, .status, .devices: return nil
    }
    guard Pattern(key).isLiteral else { return nil }
    return registry.deviceIndex(ofID: String(key.prefix { $0 != "/" }).utf8.span)
  }
}

extension EngineSettings {
  init(_ settings: ClusterConfiguration) {
    var connection = NATSSettings(servers: settings.servers, name: "settle \(settings.member)")
    connection.username = settings.username
    connection.password = settings.password
    connection.credentialsFile = settings.credentialsFile
    connection.ca = settings.ca
    connection.certificate = settings.certificate
    connection.key = settings.key
    self.init(cluster: settings.name, connection: connection)
    partitions = settings.partitions
    replicas = settings.replicas
  }
}

/// The sender of a request that another member has passed on.
final class PeerRequester: Requester {
  let number: UInt64
  let member: String
  /// The request's number, as the other member counts them.
  private let request: UInt64
  private let link: PeerLink
  /// Called once, when no reply follows.
  private let onEnd: (PeerRequester) -> Void
  private var owed = 0
  private var waits = 0
  /// Whether the request was executed, as far as it is at once.
  private var isPerformed = false
  private var isDone = false
  /// How long a reply with several rows is at most, in bytes.
  private static let usualSize = 256 * 1024

  var isPeer: Bool { true }

  init(
    number: UInt64,
    member: String,
    request: UInt64,
    link: PeerLink,
    onEnd: @escaping (PeerRequester) -> Void
  ) {
    self.number = number
    self.member = member
    self.request = request
    self.link = link
    self.onEnd = onEnd
  }

  func send(_ reply: ControlReply) {
    switch reply {
    case .pending(let rows, let id): deliver(rows[...]) { .pending(Array($0), id: id) }
    case .logged(let rows, let id): deliver(rows[...]) { .logged(Array($0), id: id) }
    default: deliver(reply.line)
    }
  }

  /// Sends rows, in several replies where they are long.
  private func deliver<Row>(_ rows: ArraySlice<Row>, _ reply: (ArraySlice<Row>) -> ControlReply) {
    let line = reply(rows).line
    guard line.count > Self.usualSize, rows.count > 1 else { return deliver(line) }
    let middle = rows.startIndex + rows.count / 2
    deliver(rows[..<middle], reply)
    deliver(rows[middle...], reply)
  }

  func pass(_ line: [UInt8], isFinal: Bool) { deliver(line, isFinal: isFinal) }

  private func deliver(_ line: [UInt8], isFinal: Bool = false) {
    guard !isDone else { return }
    guard link.canCarry(line) else {
      let message = "the reply of the gateway that drives the device is too long for the engine"
      return deliver(ControlReply.failure(ErrorReply(.limit, message), id: nil).line)
    }
    link.append(
      .init(kind: .reply, number: request, flags: isFinal ? .final : [], line: line),
      to: member
    )
  }

  func owesReply() { owed += 1 }

  func hasReplied() {
    owed = max(0, owed - 1)
    endIfDone()
  }

  func beginWait() { waits += 1 }

  func endWait() {
    waits = max(0, waits - 1)
    endIfDone()
  }

  /// The request was executed; replies may follow.
  func performed() {
    isPerformed = true
    endIfDone()
  }

  private func endIfDone() {
    guard isPerformed, owed == 0, waits == 0, !isDone else { return }
    isDone = true
    link.append(.init(kind: .reply, number: request, flags: .last), to: member)
    onEnd(self)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Commands
import Configuration
import LastOut
import MQTT
import Operations
import Routing

/// The sessions at the broker of the partitions that this member drives.
///
/// Each has a client id of its own, which is the same on every member. The member that connected
/// last with it has the session, and what was published meanwhile; the broker ends the connection
/// of the one before. A connection is made only when ``Membership`` says so, at the time that
/// ``SessionSchedule`` says, and never made again by itself.
final class PartitionSessions {
  /// Commands that may wait for room in all sessions together before the core is asked for no more.
  private static let mostWaiting = 256
  /// How long the broker keeps a session without a connection.
  static let expiry = Duration.seconds(120)
  /// How long `settle/status` stays online when the member is gone that drives partition 0.
  static let statusDelay = Duration.seconds(20)

  private let context: GatewayContext
  private let cluster: String
  private let settings: MQTTConfiguration
  /// Says less about connections, of which there are as many as partitions.
  private let log: Logger
  private var sessions: [Partition: PartitionSession] = [:]
  /// How many commands wait for room, in all sessions.
  private var waitingCommands = 0
  /// Connections that are being closed.
  private var closing: [MQTTClient] = []
  private var schedule = SessionSchedule()
  private var pace = LogPace()

  /// Sets the handlers of a new connection.
  var onNewSession: ((PartitionSession) -> Void)?
  /// The filters of a partition.
  var subscriptions: ((Partition) -> [Subscription])?
  var onConnected: ((Partition) -> Void)?
  /// A connection has ended, or could not be made; `shortLives` is how often in a row it ended
  /// soon.
  var onEnded: ((_ partition: Partition, _ shortLives: Int) -> Void)?
  /// A command is lost with its connection.
  var onLost: ((_ token: UInt64) -> Void)?

  init(_ context: GatewayContext, cluster: String, _ settings: MQTTConfiguration) {
    self.context = context
    self.cluster = cluster
    self.settings = settings
    log = context.log.raised(to: .error)
  }

  deinit {
    for session in sessions.values { session.link.client.removeHandlers() }
  }

  subscript(partition: Partition) -> PartitionSession? { sessions[partition] }

  /// The connection that carries a device's messages; `nil` while this member does not drive it.
  func link(ofDevice device: Int) -> BrokerLink? {
    guard let partition = context.places?.partition(ofDevice: device) else { return nil }
    return sessions[partition]?.link
  }

  // MARK: - Publishing

  /// Publishes a command when there is room; `false` while its device has no connection.
  func publish(_ publish: CommandPublish, ofDevice device: Int) -> Bool {
    guard let partition = context.places?.partition(ofDevice: device) else { return false }
    return sessions[partition]?.publish(publish) ?? false
  }

  /// Whether commands may be handed over.
  var hasRoom: Bool { waitingCommands < Self.mostWaiting }

  /// Whether everything was acknowledged; takes time in proportion to the sessions.
  var isIdle: Bool { sessions.values.allSatisfy(\.isIdle) }

  /// Own messages that wait.
  var waitingCount: Int { sessions.values.reduce(0) { $0 + $1.link.waitingCount } }

  func publishWaiting() { for session in sessions.values { session.publishWaiting() } }

  // MARK: - Connecting

  /// Connects the session of a partition as soon as possible; ``onConnected`` or ``onEnded``
  /// follows.
  func connect(_ partition: Partition) {
    close(partition)
    schedule.connect(partition, at: EventLoop.now())
  }

  /// Does what is due; call it after each batch.
  func advance(to now: Moment) {
    closing.removeAll { $0.state == .idle }
    for effect in schedule.advance(to: now) {
      switch effect {
      case .start(let partition): start(partition, at: now)
      case .failed(let partition): onEnded?(partition, 0)
      }
    }
  }

  /// When ``advance(to:)`` has something to do.
  var nextDeadline: Moment? { schedule.nextDeadline }

  /// Connections that are not closed yet.
  var isClosing: Bool { closing.contains { $0.state != .idle } }

  private func start(_ partition: Partition, at now: Moment) {
    var settings = settings
    let number = partition.number < 10 ? "0\(partition.number)" : "\(partition.number)"
    settings.clientID = "\(cluster)-p\(number)"
    settings.sessionExpiry = Self.expiry
    if partition.number == 0, context.configuration.isPublic {
      settings.will = .init(
        topic: "\(context.configuration.baseTopic)/status",
        payload: Array("offline".utf8)
      )
      settings.will?.delay = Self.statusDelay
    }
    let client: MQTTClient
    do throws(OperationsError) {
      client = try MQTTClient(configuration: settings, loop: context.loop, log: log)
    } catch {
      context.log.error("Cannot make a connection for a partition", ["reason": error.description])
      _ = schedule.ended(partition, at: now)
      return
    }
    let session = PartitionSession(
      partition,
      link: BrokerLink(name: nil, client: client, log: log),
      onWaiting: { [unowned self] in waitingCommands += $0 }
    )
    sessions[partition] = session
    onNewSession?(session)
    client.onState = { [unowned self] in stateChanged(of: partition, to: $0) }
    client.subscribe(subscriptions?(partition) ?? [])
    client.start()
  }

  private func stateChanged(of partition: Partition, to state: MQTTClient.State) {
    guard let session = sessions[partition] else { return }
    switch state {
    case .connected:
      session.link.isConnected = true
      schedule.connected(partition, at: EventLoop.now())
      onConnected?(partition)
    case .waiting:
      let now = EventLoop.now()
      let reason = session.link.client.trouble?.reason
      disconnect(partition)
      let shortLives = schedule.ended(partition, at: now)
      report(partition, reason, wasConnected: shortLives != nil, at: now)
      if let shortLives { onEnded?(partition, shortLives) }
    case .idle, .connecting: break
    }
  }

  /// Logs a connection that ended, now and then.
  private func report(
    _ partition: Partition,
    _ reason: String?,
    wasConnected: Bool,
    at now: Moment
  ) {
    guard let count = pace.record(at: now) else { return }
    context.log.warning(
      wasConnected ? "The session of a partition ended" : "No session for a partition",
      [
        "partition": "\(partition)", "reason": reason ?? "unknown", "count": String(count),
      ]
    )
  }

  /// Ends the connection of a partition; the broker keeps the session for the next owner.
  func close(_ partition: Partition) {
    schedule.close(partition)
    disconnect(partition)
  }

  private func disconnect(_ partition: Partition) {
    guard let session = sessions.removeValue(forKey: partition) else { return }
    session.link.isConnected = false
    let client = session.link.client
    client.removeHandlers()
    for token in session.removeOutstanding() { onLost?(token) }
    client.close()
    closing.append(client)
  }

  /// Writes the newest messages, and ends all connections.
  func closeAll() {
    for session in sessions.values { session.link.client.flush() }
    for partition in sessions.keys.sorted() { close(partition) }
  }

  /// Changes what connected sessions subscribe to, after a reload.
  func replaceSubscriptions(_ before: (Partition) -> [Subscription]) {
    for (partition, session) in sessions {
      let old = before(partition)
      let new = subscriptions?(partition) ?? []
      let filters = Set(new.map(\.filter))
      let known = Set(old)
      session.link.client.unsubscribe(old.map(\.filter).filter { !filters.contains($0) })
      session.link.client.subscribe(new.filter { !known.contains($0) })
    }
  }
}

extension MQTTClient {
  /// Publishes a command; `false` if the client accepts none at the moment.
  func publish(_ command: CommandPublish) -> Bool {
    var properties = PublishProperties()
    properties.expirySeconds = command.expirySeconds
    if command.isReplayed { properties.userProperties["replayed"] = "1" }
    return publish(
      topic: command.topic,
      payload: command.payload,
      qos: command.qos,
      properties: properties,
      token: BrokerLink.Sender.command.token(command.token)
    )
  }

  /// Breaks the references that the handlers hold.
  func removeHandlers() {
    onState = nil
    onRetainedIgnored = nil
    onMessage = nil
    onOutcome = nil
  }
}

/// The session at the broker that carries the messages of a partition's devices, while this member
/// drives them.
final class PartitionSession {
  let partition: Partition
  let link: BrokerLink
  /// The commands that were handed to the connection and have no outcome, by token.
  private var outstanding: Set<UInt64> = []
  /// Commands that wait for room.
  private var waiting = Deque<CommandPublish>()
  /// Called when so many more commands wait, or fewer.
  private let onWaiting: (Int) -> Void

  init(_ partition: Partition, link: BrokerLink, onWaiting: @escaping (Int) -> Void) {
    self.partition = partition
    self.link = link
    self.onWaiting = onWaiting
  }

  /// Whether no command and no own message waits or is in flight.
  var isIdle: Bool { waiting.isEmpty && outstanding.isEmpty && link.isIdle }

  /// Publishes a command when there is room; `false` without a connection.
  func publish(_ publish: CommandPublish) -> Bool {
    guard link.isConnected else { return false }
    if waiting.isEmpty, send(publish) { return true }
    waiting.append(publish)
    onWaiting(1)
    return true
  }

  /// Publishes commands that wait, while there is room, and then what the gateway says itself.
  func publishWaiting() {
    while let next = waiting.first, send(next) {
      waiting.removeFirst(1)
      onWaiting(-1)
    }
    link.sendMessages()
  }

  private func send(_ publish: CommandPublish) -> Bool {
    guard link.client.canPublish else { return false }
    outstanding.insert(publish.token)
    let isAccepted = link.client.publish(publish)
    if !isAccepted { outstanding.remove(publish.token) }
    return isAccepted
  }

  /// A command has its outcome; `false` if it had one before.
  func finish(_ token: UInt64) -> Bool { outstanding.remove(token) != nil }

  /// Removes and returns all commands without an outcome: they are lost.
  func removeOutstanding() -> [UInt64] {
    defer { outstanding = [] }
    onWaiting(-waiting.count)
    var tokens = outstanding.sorted()
    while let next = waiting.popFirst() { tokens.append(next.token) }
    return tokens
  }
}

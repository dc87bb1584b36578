// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Commands
import Configuration
import Control
import Devices
import GatewayCore
import HomeAssistant
import LastOut
import MQTT
import Operations
import Routing
import Values

/// MQTT: owns the connections to brokers and the meaning of their topics.
///
/// Messages become calls of the core, and what the core decides becomes messages.
final class MQTTSurface {
  let context: GatewayContext
  let commandMessages: CommandMessages
  let deviceReports: DeviceReports
  let routes: RouteMessages
  /// The largest payload that is accepted, in bytes.
  let payloadLimit: Int
  /// Whether the gateway's status is published.
  let isPublic: Bool
  /// The gateway's own broker first, then the others by name.
  private(set) var links: [BrokerLink] = []
  /// The connections that carry the messages of devices in a cluster; `nil` without one.
  let sessions: PartitionSessions?
  /// Whether no other member of the cluster is there.
  var isLastMember: (() -> Bool)?
  /// Receives what members of the cluster publish about themselves.
  var onMemberStatus: ((_ member: String, _ isOnline: Bool) -> Void)?
  private(set) var topics: TopicMap
  var replyTopics: ReplyTopics
  let wills: RouteWills
  /// `nil` without discovery.
  private(set) var discovery: DiscoverySurface?
  var acknowledgementLatency = AcknowledgementLatency()
  /// How often the gateway's own broker was connected.
  private(set) var connectionCount = 0
  private(set) var statusTopic = StatusTopic()
  /// How often ``sendMarker(on:of:)`` was called.
  private var markerCount = 0

  /// Called for every command that is handed to the broker.
  var onCommand: ((_ topic: String, _ payload: [UInt8], _ keys: [String]) -> Void)?
  /// Called when the connection to the gateway's own broker was made or ended.
  var onConnection: ((_ isUp: Bool) -> Void)?
  /// Called when a message to a device is rejected that names none of its properties.
  var onRejection: ((EventObject, _ device: Int) -> Void)?
  /// Receives each message of the gateway's own broker, where announcements are followed; answers
  /// whether it is one.
  var onAnnouncement: ((Span<UInt8>, Span<UInt8>, Moment) -> Bool)?
  /// Called when a device came online or went offline.
  var onAvailability: ((_ device: Int) -> Void)?

  /// - Throws: When the MQTT library cannot be set up; an absent broker is no error.
  init(_ context: GatewayContext) throws(OperationsError) {
    self.context = context
    commandMessages = CommandMessages(context: context)
    deviceReports = DeviceReports(context: context)
    let configuration = context.configuration
    payloadLimit = configuration.limits.payload
    isPublic = configuration.isPublic
    let announcer = configuration.discovery.map {
      DiscoveryAnnouncer(
        baseTopic: configuration.baseTopic,
        configuration: $0,
        version: Release.version
      )
    }
    topics = TopicMap(
      configuration: configuration,
      registry: context.registry,
      sources: context.arrivals.sources,
      announcer: announcer
    )
    routes = RouteMessages(context, mark: topics.routeName)
    replyTopics = ReplyTopics(configuration, log: context.log)
    wills = try RouteWills(context)
    sessions = configuration.cluster.map {
      PartitionSessions(context, cluster: $0.name, Self.ownSettings(configuration, context))
    }
    try addLinks(configuration)
    addSessions()
    wills.forward = { [unowned self] in forward($0, to: $1) }
    discovery = announcer.map { DiscoverySurface($0, context, link: own) }
  }

  deinit {
    for link in links { link.client.removeHandlers() }
  }

  /// The connection to the gateway's own broker.
  var own: BrokerLink { links[0] }

  /// The connection that carries the messages of a device; `nil` where another gateway drives it.
  func link(ofDevice device: Int) -> BrokerLink? {
    guard let sessions else { return own }
    return sessions.link(ofDevice: device)
  }

  /// Starts connecting.
  func start() {
    for link in links { link.client.start() }
    // In a cluster, each with the partition of its route.
    if sessions == nil { wills.start() }
  }

  /// Closes the connections, once the newest messages are written.
  func close() {
    for link in links { link.client.flush() }
    sessions?.closeAll()
    // Without DISCONNECT a broker publishes the last will: right where `offline` was not published.
    for link in links where link.isIdle { link.client.close() }
    own.discardMessages(others: own.isConnected ? context.core.dueStateCount : 0)
  }

  /// The definitions of a reload count from now on: exchanges the topic maps, and announces the
  /// devices that changed.
  func definitionsReplaced(_ reload: ReloadProgress) {
    swap(&topics, &reload.topics)
    context.lights.redefined(reload.prepared.changedDevices, isAnnounced: discovery != nil)
    discovery?.announce(reload.prepared.changedDevices)
  }

  /// Unsubscribes from some topics that a reload has removed, or subscribes to new ones, or
  /// requests their states.
  ///
  /// Other subscriptions stay, so that no retained message is received twice.
  func updateSubscriptions(_ reload: ReloadProgress) {
    let limit = ReloadProgress.limit
    // The sessions of a cluster have subscribed.
    if sessions != nil { (reload.removed, reload.added) = ([], []) }
    if !reload.removed.isEmpty {
      own.client.unsubscribe(Array(reload.removed.popFirst(limit)))
    } else if !reload.added.isEmpty {
      own.client.subscribe(Array(reload.added.popFirst(limit)))
    } else {
      context.core.requestStates(of: reload.requests.popFirst(limit))
    }
  }

  /// Handles a message on `settle/status`.
  func receiveStatus(_ payload: Span<UInt8>, isRetained: Bool) {
    if sessions != nil { return receiveClusterStatus(payload) }
    let reaction = statusTopic.receive(
      payload,
      isRetained: isRetained,
      connections: connectionCount,
      usesMQTT5: own.client.version == .v5,
      at: EventLoop.now()
    )
    switch reaction {
    case .nothing: break
    case .restore(let count):
      guard !context.core.isShuttingDown else { return }
      publishStatus()
      guard let count else { return }
      context.log.warning(
        "The status was set to offline by another client, and is online again",
        ["topic": topics.status, "count": String(count)]
      )
    case .another:
      context.log.warning(
        "Another gateway is online at this base topic: both will act on every command",
        ["topic": topics.status]
      )
    }
  }

  // MARK: - Connections

  /// How this gateway connects to its own broker.
  private static func ownSettings(
    _ configuration: GatewayConfiguration,
    _ context: GatewayContext
  ) -> MQTTConfiguration {
    var limits = configuration.limits
    limits.payload = max(
      limits.payload,
      RouteMessages.announcementLimit(configuration),
      configuration.importing == nil ? 0 : limits.announcement
    )
    // In a cluster a second process of a member's name must not take the first one's connection.
    let ending = configuration.cluster.map { _ in "-" + String(context.processNumber, radix: 36) }
    return MQTTConfiguration(
      configuration.mqtt,
      fallbackID: configuration.standardClientID + (ending ?? ""),
      limits: limits
    )
  }

  private func addLinks(_ configuration: GatewayConfiguration) throws(OperationsError) {
    let clientID = configuration.standardClientID
    var own = Self.ownSettings(configuration, context)
    var limits = configuration.limits
    limits.payload = max(payloadLimit, routes.announcementLimit)
    if let cluster = configuration.cluster {
      own.will = .init(topic: topics.status(of: cluster.member), payload: Array("offline".utf8))
    } else if configuration.isPublic {
      own.will = .init(topic: topics.status, payload: Array("offline".utf8))
      own.sessionExpiry = .seconds(30)
    }
    try addLink(nil, own)
    for name in configuration.brokers.keys.sorted() {
      guard let broker = configuration.brokers[name] else { continue }
      try addLink(
        name,
        MQTTConfiguration(
          broker,
          fallbackID: "\(clientID)-\(name)",
          limits: limits
        )
      )
    }
  }

  private func addLink(_ name: String?, _ settings: MQTTConfiguration) throws(OperationsError) {
    let number = links.count
    let client = try MQTTClient(configuration: settings, loop: context.loop, log: context.log)
    // Removed when the surface ends: a weak reference would be looked up for every message.
    client.onState = { [unowned self] in connectionChanged(number, to: $0) }
    client.onMessage = { [unowned self] topic, payload, message in
      receive(topic, payload, message, from: number)
    }
    client.onRetainedIgnored = { [unowned self] in ignoreRetained(topic: $0) }
    client.subscribe(topics.subscriptions.all(forBroker: name, isOwn: name == nil))
    let link = BrokerLink(name: name, client: client, log: context.log)
    client.onOutcome = { [unowned self, unowned link] in finish($0, $1, on: link) }
    links.append(link)
  }

  private func addSessions() {
    sessions?.onNewSession = { [unowned self] session in
      let client = session.link.client
      client.onMessage = { [unowned self] topic, payload, message in
        context.receivingPartition = session.partition
        defer { context.receivingPartition = nil }
        receive(topic, payload, message, from: 0)
      }
      client.onOutcome = { [unowned self, unowned session] token, outcome in
        if BrokerLink.Sender(rawValue: token.sender) == .command, !session.finish(token.number) {
          return
        }
        finish(token, outcome, on: session.link)
      }
      client.onRetainedIgnored = { [unowned self] in ignoreRetained(topic: $0) }
    }
    sessions?.onLost = { [unowned self] in
      finish(BrokerLink.Sender.command.token($0), .lost, on: own)
    }
  }

  /// Somebody has published the status of the cluster.
  private func receiveClusterStatus(_ payload: Span<UInt8>) {
    guard Bytes.areEqual(payload, Array("offline".utf8)), !context.core.isShuttingDown,
      context.places?.drives(Partition(0)) ?? false
    else { return }
    publishStatus()
  }

  /// Publishes what comes back behind the messages that the broker retains, of the devices of a
  /// partition if the connection is its session.
  ///
  /// Its payload differs with each process and connection.
  func sendMarker(on link: BrokerLink, of partition: Partition? = nil) {
    markerCount += 1
    link.marker = Array("\(context.processNumber)-\(markerCount)".utf8)
    let topic = TopicMap.marker(below: context.configuration.baseTopic, of: partition)
    let message = BrokerLink.Message(topic: topic, payload: link.marker)
    if !link.send(message) { link.enqueue(message) }
  }

  private func connectionChanged(_ number: Int, to state: MQTTClient.State) {
    let isUp =
      switch state {
      case .connected: true
      case .idle, .connecting, .waiting: false
      }
    guard links[number].isConnected != isUp else { return }
    links[number].isConnected = isUp
    guard number == 0 else { return }
    context.core.connectionChanged(isUp: isUp, at: EventLoop.now())
    if isUp {
      connectionCount += 1
      own.logDroppedMessages()
      sendMarker(on: own)
      publishStatus()
      context.lights.connected()
      discovery?.connected()
    }
    onConnection?(isUp)
  }
}

/// Messages that name new devices.
extension MQTTSurface {
  /// Receives a message that may be the first of its device; `false` where it is none.
  func receiveArrival(_ topic: Span<UInt8>, _ payload: Span<UInt8>) -> Bool {
    let sources = context.arrivals.sources
    guard sources.contains(where: { $0.mayMatch(topic) }) else { return false }
    return context.arrivals.receive(
      Text.of(topic),
      payload,
      in: context.registry,
      limit: context.configuration.limits.devices
    )
  }

  /// Receives messages that waited for devices that have appeared now, and for no other device.
  func receiveKept(_ messages: [DeviceArrivals.Message], at now: Moment) {
    let registry = context.registry
    let isNew = { [context] in context.arrivals.isNew(registry.id(ofDevice: $0)) }
    for message in messages {
      let roles = topics.roles(of: message.topic.utf8.span).filter { role in
        switch role {
        case .state(let key, _): isNew(registry.device(of: key))
        case .availability(let device, _): isNew(device)
        case .command, .awake, .deviceGet, .busy, .status, .marker: false
        }
      }
      guard !roles.isEmpty, !message.payload.isEmpty else { continue }
      let document = StatePayload.read(message.payload.span)
      for role in roles {
        receiveReport(document, message.payload.span, for: role, among: roles, at: now)
      }
    }
  }
}

/// What else belongs to a partition: routes, announcements, and the status of the cluster.
extension MQTTSurface {
  /// This member drives a partition from now on, or not any more.
  func ownershipChanged(of partition: Partition, isDriven: Bool) {
    guard let places = context.places else { return }
    for (number, route) in context.configuration.routes.enumerated()
    where places.partition(ofName: route.clusterName) == partition {
      wills.setActive(isDriven, route: number)
      guard let broker = route.from.broker,
        let link = links.first(where: { $0.name == broker })
      else { continue }
      if isDriven {
        link.client.subscribe([Subscription(to: route)])
      } else if !drivesRoute(from: route.from, places) {
        link.client.unsubscribe([route.from.topic])
      }
    }
    guard isDriven else { return }
    discovery?.announce(places.devices(of: partition))
    if partition == Partition(0) { publishStatus() }
  }

  /// The session of a partition was made: the broker sends what it retains of its devices.
  func sessionConnected(_ partition: Partition, at now: Moment) {
    guard let session = sessions?[partition] else { return }
    context.core.retainedMessagesFollow(of: context.places?.devices(of: partition) ?? [], at: now)
    sendMarker(on: session.link, of: partition)
  }

  /// Whether this member drives a route with this input.
  private func drivesRoute(from end: RouteConfiguration.End, _ places: DevicePlaces) -> Bool {
    context.configuration.routes.contains {
      $0.from == end && places.drives(places.partition(ofName: $0.clusterName))
    }
  }
}

/// Retained commands are ignored: a stale command must not replay.
///
/// Subscriptions to command topics ask the broker not to send retained messages. Under MQTT 3.1.1
/// it sends them nevertheless, and a filter for state topics that covers a command topic requests
/// them.
extension MQTTSurface {
  /// Whether a message on a command topic is retained; if so, it is counted and logged.
  func ignoresRetained(_ message: borrowing InboundMessage, on topic: Span<UInt8>) -> Bool {
    guard message.flags.retained else { return false }
    ignoreRetained(topic: Text.of(topic))
    return true
  }

  /// Counts and logs a retained message, which has no further effect.
  func ignoreRetained(topic: String) { context.core.rejectRetained(topic: topic) }
}

/// Measures how long the broker takes to acknowledge a command.
struct AcknowledgementLatency {
  private(set) var histogram = DurationHistogram(
    bounds: [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000].map { .milliseconds($0) }
  )
  /// When the commands in flight were published, oldest first; as many as the window allows.
  private var inFlight: [(token: UInt64, at: Moment)] = []

  mutating func published(_ token: UInt64, at now: Moment) { inFlight.append((token, now)) }

  mutating func finished(_ token: UInt64, isAcknowledged: Bool, at now: Moment) {
    guard let place = inFlight.firstIndex(where: { $0.token == token }) else { return }
    let start = inFlight.remove(at: place).at
    if isAcknowledged { histogram.record(start.duration(to: now)) }
  }
}

/// What other clients publish on `settle/status`.
///
/// Another gateway that ends leaves `offline` behind, which is wrong while this one is online.
struct StatusTopic {
  /// What a message asks for.
  enum Reaction {
    case nothing
    /// Publish `online` again; `count` as in ``LogPace``, `nil` if the log need not say so.
    case restore(count: UInt64?)
    /// Log that another gateway is online at this base topic.
    case another
  }

  /// When another gateway was last seen online; `nil` if never, or if it has ended.
  private(set) var otherGatewaySeenAt: Moment?
  /// Limits the log of restored statuses.
  private var pace = LogPace()

  /// Handles a status that this gateway may not have published.
  ///
  /// `connections` is how often the gateway's own broker was connected. With MQTT 5 a broker does
  /// not send this gateway's own status back to it.
  mutating func receive(
    _ payload: Span<UInt8>,
    isRetained: Bool,
    connections: Int,
    usesMQTT5: Bool,
    at now: Moment
  ) -> Reaction {
    if Bytes.areEqual(payload, Array("offline".utf8)) {
      // What was retained at the broker is replaced on each connection.
      guard !isRetained else { return .nothing }
      otherGatewaySeenAt = nil
      return .restore(count: pace.record(at: now))
    }
    guard Bytes.areEqual(payload, Array("online".utf8)) else { return .nothing }
    // What is retained after the first connection is this gateway's own status.
    guard isRetained ? connections == 1 : usesMQTT5 else { return .nothing }
    let isNew = otherGatewaySeenAt == nil
    otherGatewaySeenAt = now
    return isNew ? .another : .nothing
  }
}

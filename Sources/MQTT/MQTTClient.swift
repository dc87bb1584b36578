// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut
package import Operations

/// A connection to a broker that reconnects whenever it is lost.
///
/// libmosquitto is the codec; the event loop drives it.
///
/// Each attempt has a new library handle, the client's own deadlines and a jittered back-off, and
/// subscribes again. Publishes are accepted only while ``canPublish``. Those that are
/// unacknowledged when a connection ends are reported as lost; the owner sends the newest values
/// again.
///
/// A handler may call any method of the client. Work that is not possible inside a call into the
/// library, such as closing, is deferred until the call returns.
///
/// After a loss that a message in flight may have caused, publishes are sent one at a time until
/// those topics are acknowledged. A topic that was alone in flight at three losses in a row is
/// quarantined: later publishes of the same payload are refused for a time; see ``PoisonTopics``.
package final class MQTTClient {
  /// Called for each message.
  ///
  /// Topic and payload are valid only during the call. The message reads response topic and
  /// correlation data on demand.
  package var onMessage:
    ((_ topic: Span<UInt8>, _ payload: Span<UInt8>, _ message: borrowing InboundMessage) -> Void)?
  /// Called on every change of ``state``; on a new connection after subscriptions are sent.
  package var onState: ((State) -> Void)?
  /// Called once for each accepted publish.
  ///
  /// May be called before ``publish`` returns.
  package var onOutcome: ((Token, PublishOutcome) -> Void)?
  /// Called when ``canPublish`` becomes true; never inside ``publish``.
  package var onReady: (() -> Void)?
  /// Called instead of ``onMessage`` for a retained message that no subscription wants.
  package var onRetainedIgnored: ((_ topic: String) -> Void)?

  /// Called for each subscription that the broker has answered; `refusal` says why it was refused.
  package var onSubscribed: ((_ filter: String, _ refusal: String?) -> Void)?

  package internal(set) var state: State = .idle
  package internal(set) var statistics = Statistics()
  /// Why there is no connection, as far as that is known; `nil` while there is one.
  package internal(set) var trouble: (cause: ConnectionTrouble, reason: String)?

  let configuration: MQTTConfiguration
  let loop: EventLoop
  let log: Logger
  /// The timer for the next deadline of this client.
  var timer: LoopTimer?
  /// Wakes the loop when the connecting thread has a result.
  let waker: Waker
  private var wakerWatch: IOWatch?
  /// Sends the packets of a batch of events.
  var batchEnd: BatchEnd?

  var phase: ConnectionPhase = .idle
  var connection: Connection?
  var reconnection: Reconnection
  /// The addresses that the next attempts try.
  var round = AddressRound()
  var olderProtocol = OlderProtocol()
  let resolve: ConnectThread.Resolver
  var qosLimit = QoSLimit()
  var window: PublishWindow
  var subscriptions = SubscriptionTable()
  /// Whether a call into the library or a handler may be on the stack.
  var isBusy = false
  /// Whether ``close()`` was called and is deferred.
  var mustClose = false
  /// The number of outcomes reported so far.
  var outcomeCount = 0
  /// Whether ``onReady`` was called since publishing became possible.
  var wasReady = false

  /// Creates a client that is idle.
  ///
  /// - Parameters:
  ///   - configuration: The broker, and the options of the connection.
  ///   - loop: Calls all handlers.
  ///   - log: Takes what happens to the connection.
  ///   - resolve: Finds the addresses of the broker's host, in the order to try them; may block.
  /// - Throws: When the loop has no descriptor left.
  package init(
    configuration: MQTTConfiguration,
    loop: EventLoop,
    log: Logger,
    resolve: @escaping @Sendable (_ host: String) throws(UnresolvedName) -> [String] =
      HostAddresses.resolve
  ) throws(OperationsError) {
    self.configuration = configuration
    self.resolve = resolve
    self.loop = loop
    self.log = log
    window = PublishWindow(limit: configuration.window, quarantine: configuration.quarantine)
    reconnection = Reconnection(configuration: configuration, log: log)
    waker = try Waker()
    // All of these are cancelled when the client is released.
    timer = try loop.makeTimer(named: "MQTT deadlines") { [unowned self] in
      work { $0.checkDeadlines() }
    }
    wakerWatch = try loop.watch(waker, named: "MQTT connection") { [unowned self] in
      work { $0.receiveConnection() }
    }
    batchEnd = loop.atBatchEnd { [unowned self] in endBatch() }
  }

  deinit {
    batchEnd?.cancel()
    if case .starting(let thread, _) = phase { thread.abandon() }
    connection?.drop()
    wakerWatch?.cancel()
    timer?.cancel()
  }

  /// The URL of the connected broker; without a connection those of all.
  package var endpoint: String {
    reached?.endpoint.description ?? configuration.brokers
  }
  /// The connected address in numbers, or the path of a socket; `nil` without a connection.
  package var address: String? { reached?.address }
  private var reached: AddressRound.Target? {
    connection?.isAccepted == true ? connection?.target : nil
  }
  /// The version of the connection, or the one that is tried first.
  package var version: MQTTConfiguration.ProtocolVersion {
    (connection?.configuration ?? configuration).version
  }

  /// Whether the client is connected and the window has room.
  package var canPublish: Bool {
    guard case .connected = phase else { return false }
    return connection?.problem == nil && !mustClose && window.hasRoom
  }

  package var unacknowledgedCount: Int { window.entries.count }

  /// The topics that are held back because the broker drops the connection for what was sent there,
  /// in order, and until when.
  package func quarantinedTopics(at now: Moment) -> [(topic: String, until: Moment)] {
    window.poisonTopics.quarantined(at: now)
  }

  /// How many bytes the broker has sent that were not read yet; 0 without a connection.
  ///
  /// It grows when messages arrive faster than they are read, up to the size of the kernel's
  /// buffer; the rest waits at the broker. Costs a system call.
  package var waitingBytes: Int { connection?.waitingBytes ?? 0 }

  /// Starts connecting; the broker may be offline.
  ///
  /// Has no effect unless the state is idle.
  package func start() {
    guard case .idle = phase else { return }
    work { $0.startAttempt() }
  }

  /// Adds subscriptions, for this connection and every later one; replaces those of the same
  /// filter.
  ///
  /// An invalid filter is logged and skipped.
  package func subscribe(_ subscriptions: [Subscription]) {
    var added: [Subscription] = []
    for subscription in subscriptions {
      if let problem = Topic.problem(inFilter: subscription.filter) {
        log.error("Subscription skipped", ["filter": subscription.filter, "reason": problem])
        continue
      }
      self.subscriptions.put(subscription)
      added.append(subscription)
    }
    guard case .connected = phase, let connection, connection.problem == nil else { return }
    connection.subscribe(added)
    connection.hasUnsent = true
    flush()
  }

  package func unsubscribe(_ filters: [String]) {
    let known = subscriptions.remove(filters)
    guard case .connected = phase, let connection, connection.problem == nil, !known.isEmpty else {
      return
    }
    do {
      try connection.handle.unsubscribe(known)
    } catch {
      connection.fail(error)
    }
    connection.hasUnsent = true
    flush()
  }

  /// Publishes one message; it is sent at the end of the batch, or with ``flush()``.
  ///
  /// Call it only while ``canPublish``. An invalid topic, or a quarantined message, is refused with
  /// an outcome.
  ///
  /// - Returns: `false` if the client is not connected or the window is full; then no outcome
  ///   follows.
  package func publish(
    topic: String,
    payload: [UInt8],
    qos: Int = 1,
    retain: Bool = false,
    properties: PublishProperties = PublishProperties(),
    token: Token
  ) -> Bool {
    guard canPublish, let connection else { return false }
    let now = EventLoop.now()
    if let problem = window.refusal(topic: topic, payload: payload, qos: qos, at: now) {
      refuse(token, problem)
      return true
    }
    let qos = qosLimit.lowered(qos, log)
    let list = connection.configuration.version == .v5 ? properties.list() : PropertyList()
    if let failure = list.failure {
      refuse(token, failure.reason)
      return true
    }
    do {
      let identifier = try connection.handle.publish(
        topic: topic,
        payload: payload,
        qos: Int32(qos),
        retain: retain,
        properties: list
      )
      window.sent(
        PublishWindow.Entry(
          identifier: identifier,
          token: token,
          topic: topic,
          payload: payload,
          qos: qos,
          sentAt: now
        )
      )
    } catch  where error.isConnectionLost {
      connection.fail(error)
      rearm()
      return false
    } catch {
      refuse(token, error.reason)
      return true
    }
    statistics.published += 1
    connection.queuedPackets += 1
    if !isBusy {
      connection.hasUnsent = true
      if window.awaitsWriting { flush() }
    }
    if !window.hasRoom { wasReady = false }
    return true
  }

  /// Reports that the publish of `token` was refused.
  func refuse(_ token: Token, _ reason: String) {
    statistics.refused += 1
    onOutcome?(token, .refused(reason))
  }

  /// Disconnects, or closes the connection if that takes more than half a second.
  ///
  /// After a DISCONNECT the broker does not publish the last will. Unacknowledged publishes are
  /// reported as lost and the state becomes idle; then ``start()`` may be called again. Inside a
  /// handler all of this is deferred until the handler returns.
  package func close() {
    guard !isBusy else {
      mustClose = true
      return
    }
    work { $0.beginClose() }
  }
}

extension MQTTClient {
  /// Identifies one publish to its owner: which part of it sent the message, and that part's own
  /// number.
  package struct Token: Hashable, Sendable {
    package var sender: UInt8
    package var number: UInt64

    package init(sender: UInt8 = 0, number: UInt64) {
      self.sender = sender
      self.number = number
    }
  }

  package enum State: Hashable, Sendable {
    /// Not started, or closed.
    case idle
    case connecting
    case connected(sessionPresent: Bool)
    /// Waiting before the next attempt; `reason` in words.
    case waiting(until: Moment, reason: String)
  }

  /// Counters since the client was created.
  package struct Statistics: Hashable, Sendable {
    package var attempts = 0
    package var connections = 0
    /// Connections that ended without ``MQTTClient/close()``.
    package var losses = 0
    package var published = 0
    package var refused = 0
    package var received = 0
    /// Retained messages ignored because no subscription delivers them.
    package var retainedIgnored = 0
    /// Messages larger than ``MQTTConfiguration/maximumPacket``.
    package var oversizedIgnored = 0
  }
}

/// The highest quality of service that the broker supports.
///
/// A broker that supports only QoS 0 gets everything at QoS 0: nothing is acknowledged then.
struct QoSLimit: Sendable {
  private(set) var maximum = 2
  private var isLogged = false

  /// Records what CONNACK says; `nil` when it sets no limit.
  mutating func accepted(maximum: Int?) {
    set(maximum ?? 2)
  }

  /// Records a refused CONNECT; the last will has the quality of service that was refused.
  mutating func refused(connackCode code: Int32) {
    if code == ReasonCode.qosNotSupported { set(0) }
  }

  /// The quality of service to publish with; logs once that it is lower than `wanted`.
  mutating func lowered(_ wanted: Int, _ log: Logger) -> Int {
    guard wanted > maximum, (0...2).contains(wanted) else { return wanted }
    if !isLogged {
      isLogged = true
      log.warning(
        "The broker does not support this quality of service; a lower one is used",
        ["wanted": String(wanted), "used": String(maximum)]
      )
    }
    return maximum
  }

  /// The configuration for the next attempt: a last will that the broker accepts.
  func limit(_ configuration: MQTTConfiguration) -> MQTTConfiguration {
    var configuration = configuration
    if let will = configuration.will { configuration.will?.qos = min(will.qos, maximum) }
    return configuration
  }

  private mutating func set(_ maximum: Int) {
    if maximum != self.maximum { isLogged = false }
    self.maximum = maximum
  }
}

/// The subscriptions of a client: each filter once, in the order of subscribing.
///
/// Filters without a wildcard are looked up by their text, because there may be one state topic per
/// property: tens of thousands. Only filters with wildcards are matched one by one.
struct SubscriptionTable {
  /// In the order of subscribing; `nil` where one was removed.
  private var entries: [Subscription?] = []
  /// The index of each filter in `entries`.
  private var places: [String: Int] = [:]
  /// The indices of filters with wildcards.
  private var wild: [Int] = []

  var all: [Subscription] { entries.compactMap { $0 } }

  /// Adds a subscription; one with the same filter is replaced in its place.
  mutating func put(_ subscription: Subscription) {
    let filter = subscription.filter
    if let place = places[filter] {
      entries[place] = subscription
    } else {
      append(subscription)
    }
  }

  /// Removes filters; returns those that existed, in the given order.
  ///
  /// The table is rebuilt once half of it was removed.
  mutating func remove(_ filters: [String]) -> [String] {
    let known = filters.filter { filter in
      guard let place = places.removeValue(forKey: filter) else { return false }
      entries[place] = nil
      return true
    }
    if places.count < entries.count / 2 {
      let staying = all
      self = SubscriptionTable()
      for subscription in staying { append(subscription) }
    }
    return known
  }

  /// Whether any subscription that matches `topic` satisfies `isChosen`.
  func contains(
    matching topic: String,
    where isChosen: (Subscription) -> Bool
  ) -> Bool {
    if let place = places[topic], let exact = entries[place], isChosen(exact) { return true }
    return wild.contains {
      guard let entry = entries[$0] else { return false }
      return isChosen(entry) && Topic.matches(filter: entry.filter, name: topic)
    }
  }

  /// Whether a subscription that matches `topic` receives retained messages, or keeps the retain
  /// flag.
  func wantsRetained(_ topic: String, _ version: MQTTConfiguration.ProtocolVersion) -> Bool {
    contains(matching: topic) { $0.wantsRetained || $0.keepsRetainFlag && version == .v5 }
  }

  private mutating func append(_ subscription: Subscription) {
    places[subscription.filter] = entries.count
    if Topic.hasWildcard(subscription.filter) { wild.append(entries.count) }
    entries.append(subscription)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Configuration
package import Control
import Devices
import Durability
import GatewayCore
import HomeAssistant
internal import JSON
import Journal
import LastOut
import MQTT
package import Operations
import Routing

/// The host of a ``GatewayCore``: it owns the event loop, the connections to brokers, the sockets
/// and the journal's thread, and has no opinion.
///
/// Surfaces (MQTT, control socket, HTTP) translate bytes into calls of ``core``. After each batch of
/// events ``step()`` performs what the core decided.
package final class GatewayHost {
  var configuration: GatewayConfiguration
  let loop: EventLoop
  let log: Logger
  var core: GatewayCore
  var encoder: EventEncoder
  var topics: TopicMap
  var links: [BrokerLink] = []
  var controlSocket: ControlSocket?
  /// The journal's file and thread; `nil` without a journal.
  var journal: JournalThread?
  var http: HTTPSurface?
  /// What is announced to Home Assistant; `nil` without discovery.
  var announcements: Announcements?
  /// Reads the configuration again; `nil` where there are no files.
  var reloader: Reloader?
  var tallies: GatewayTallies
  /// The values of rejected device-level sets, by the number of the event that reports them.
  var rejectedValues: [UInt64: JSONValue] = [:]
  /// Receives the report at the end of the shutdown.
  var onEnd: ((ShutdownReport) -> Void)?
  /// Whether another gateway's status was seen at this base topic.
  var hasSeenOther = false
  /// How often the gateway's own broker was connected.
  var connectionCount = 0
  private var timer: LoopTimer?
  private var deadline: Moment?
  private let phases: Phases
  /// The newest reply; kept for its memory.
  var line: [UInt8] = []

  /// Called for every event of every command.
  package var onEvent: ((EventObject) -> Void)?
  /// Called for every command handed to the broker.
  package var onCommand: ((_ topic: String, _ payload: [UInt8], _ keys: [String]) -> Void)?
  /// Called when the connection to the gateway's own broker was made or ended.
  package var onConnection: ((Bool) -> Void)?

  /// - Throws: When the loop or the MQTT library cannot be set up; an absent broker is no error.
  package init(
    configuration: LoadedConfiguration,
    loop: EventLoop,
    log: Logger
  ) throws(OperationsError) {
    self.configuration = configuration.gateway
    self.loop = loop
    self.log = log
    let gateway = configuration.gateway
    let brokers = gateway.brokers.keys.sorted()
    let now = EventLoop.now()
    let identifiers = CommandIdentifiers(
      wallMilliseconds: WallClock.milliseconds(),
      now: now,
      session: UInt16.random(in: 0...UInt16.max)
    )
    core = GatewayCore(
      registry: configuration.registry,
      settings: gateway.coreSettings(brokers: brokers),
      identifiers: identifiers
    )
    encoder = EventEncoder(
      identifiers,
      wallMilliseconds: WallClock.milliseconds(),
      now: now
    )
    let announcer = gateway.discovery.map {
      DiscoveryAnnouncer(
        baseTopic: gateway.baseTopic,
        configuration: $0,
        version: Release.version
      )
    }
    topics = TopicMap(
      configuration: gateway,
      registry: configuration.registry,
      announcer: announcer
    )
    announcements = announcer.map { Announcements($0) }
    tallies = GatewayTallies(devices: configuration.registry.devices.count)
    phases = Phases(loop)
    try makeLinks(brokers)
    timer = try loop.makeTimer(named: "due changes") { [unowned self] in
      deadline = nil
      core.advance(to: EventLoop.now())
    }
    loop.afterBatch = { [unowned self] in step() }
  }

  deinit {
    loop.afterBatch = nil
    for link in links {
      link.client.onState = nil
      link.client.onRetainedIgnored = nil
      link.client.onMessage = nil
      link.client.onOutcome = nil
    }
  }

  /// Opens the control socket and HTTP; nothing is received before the loop runs.
  ///
  /// - Throws: When the control socket cannot be opened, another gateway's lock included.
  package func listen() throws(OperationsError) {
    controlSocket = try ControlSocket(
      path: configuration.socket ?? ControlSocket.defaultPath(),
      gateway: self
    )
    http = try configuration.http.map { settings throws(OperationsError) in
      try HTTPSurface(settings, gateway: self)
    }
  }

  /// Closes both again, when the start fails.
  package func stopListening() {
    controlSocket?.close()
    controlSocket = nil
    http?.close()
    http = nil
  }

  /// Starts connecting, and opens the control socket if ``listen()`` has not.
  ///
  /// - Throws: When the control socket cannot be opened, another gateway's lock included.
  package func start() throws(OperationsError) {
    if controlSocket == nil { try listen() }
    for link in links { link.client.start() }
    step()
  }

  /// The path of the control socket once started.
  package var socketPath: String? { controlSocket?.path }

  /// Whether the gateway's own broker is connected.
  package var isConnected: Bool { links[0].isConnected }

  /// Counts since the start.
  package var statistics: CommandStateMachine.Statistics { core.commands.statistics }

  /// Events and replies that were dropped because a broker was away or too slow.
  package var droppedMessages: UInt64 { links.reduce(0) { $0 + $1.droppedMessages } }

  var registry: Registry { core.registry }

  /// What `get` shows of one key; `nil` for an unknown one.
  package func row(_ key: String) -> TargetRow? {
    (try? registry.index(of: key)).map { targetRow($0, at: EventLoop.now()) }
  }

  // MARK: - After each batch

  /// Performs everything that the core decided, and arms the timer.
  func step() {
    guard !core.isEnded else { return }
    let now = EventLoop.now()
    loop.enter(phases.publishing)
    // Outcomes of earlier commands go before the next commands, which would take all the room. In a
    // shutdown values go first: there may not be time for everything.
    if isConnected, !core.isShuttingDown { links[0].sendMessages() }
    if let journal {
      for result in journal.takeResults() { core.storeFinished(result, at: now) }
      if journal.isClosed { core.storeClosed() }
    }
    while let effect = core.nextEffect(at: now, host: hostState) { perform(effect, at: now) }
    guard !core.isEnded else { return }
    loop.enter(phases.emitting)
    publishOwn(at: now)
    armTimer(after: now)
    // Commands that wait for acknowledgements are sent with the next one.
    loop.isHurried = core.isHurried && !links[0].client.canPublish
    controlSocket?.isDiskBehind = core.durability?.isBehind ?? false
    http?.settle(at: now)
    controlSocket?.sendReplies()
  }

  /// Emits what is ready now, so that a direct reply keeps the order of its client's requests.
  func emitReady() {
    let now = EventLoop.now()
    while let effect = core.nextReply(at: now) { perform(effect, at: now) }
  }

  private var hostState: HostState {
    var state = HostState()
    for (number, link) in links.enumerated() where link.client.canPublish {
      state.room |= 1 << UInt64(number)
    }
    state.backlog = links[0].waitingCount
    state.isIdle = links[0].isIdle
    return state
  }

  private func armTimer(after now: Moment) {
    let next = core.nextDeadline(after: now)
    guard next != deadline else { return }
    deadline = next
    timer?.arm(at: next)
  }

  /// Publishes the gateway's own messages while there is room.
  private func publishOwn(at now: Moment) {
    guard isConnected else { return }
    links[0].sendMessages()
    publishAnnouncements()
  }

  /// Reads the time of day before events are encoded: the wall clock may have been set.
  func tieClocks(at now: Moment) {
    encoder.tie(wallMilliseconds: WallClock.milliseconds(), now: now)
  }

  // MARK: - Observers

  /// Tells the core who observes: listeners in memory, watchers, event streams.
  func updateWatching() {
    core.isWatched =
      onEvent != nil || (controlSocket?.hasWatchers ?? false) || (http?.isWatching ?? false)
    core.isStateWatched = http?.isStateWatching ?? false
    core.isRecorded = controlSocket?.hasRecorders ?? false
  }

  /// Makes every event visible to ``onEvent``.
  package func watchAll(_ handler: @escaping (EventObject) -> Void) {
    onEvent = handler
    updateWatching()
  }

  /// What runs after each batch, as the loop's watchdog names it.
  private struct Phases {
    let publishing: LoopPhase
    let emitting: LoopPhase

    init(_ loop: EventLoop) {
      publishing = loop.phase("publishing commands")
      emitting = loop.phase("publishing targets and events")
    }
  }
}

extension GatewayConfiguration {
  /// What the core needs of the settings.
  func coreSettings(brokers: [String]) -> GatewayCore.Settings {
    var settings = GatewayCore.Settings()
    settings.commands.pendingLimit = limits.pending
    settings.commands.lanes = laneLimits
    settings.commands.firstMessage = .random(in: 0..<1 << 31)
    settings.routes = routes
    settings.brokers = brokers
    settings.routeTTL = ttl
    settings.shutdownTimeout = shutdownTimeout
    return settings
  }

  /// Tokens a second and burst, by lane.
  var laneLimits: [String: (rate: Double, burst: Int)] {
    lanes.mapValues { (rate: $0.rate, burst: $0.burst) }
  }
}

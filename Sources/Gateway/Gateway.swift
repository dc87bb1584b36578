// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Configuration
package import Control
import Devices
import HomeAssistant
internal import JSON
import LastOut
import MQTT
package import Operations

/// The gateway: everything between the ways in and the broker, on one event loop.
///
/// The way of a change: a surface (``MQTTSurface``, ``ControlSocket``) resolves it and calls
/// ``take(_:of:at:origin:ttl:options:skipsQuiet:)``; the ``CommandStateMachine`` decides; after each
/// batch of events ``settleUp()`` hands out what is to be done.
package final class Gateway {
  var configuration: GatewayConfiguration
  var registry: Registry
  let loop: EventLoop
  let log: Logger
  var identifiers: Identifiers
  var machine: CommandStateMachine
  var routes: RouteMachine
  var echo: TargetEcho
  var surface: MQTTSurface
  var refusals: Refusals
  var echoLoops: EchoLoopDetector
  var links: [BrokerLink] = []
  var controlSocket: ControlSocket?
  /// What survives a crash, if anything is to.
  var journal: JournalLink?
  var http: HTTPSurface?
  /// What Home Assistant is told, if it is to be told anything.
  var announcements: Announcements?
  /// Somebody writes down what is taken.
  var isRecorded = false
  /// Reads the configuration anew, if there is one to read.
  var reloader: Reloader?
  var tallies: GatewayTallies
  /// What was to be taken and was refused, by the number of the event that will tell.
  var refusedValues: [UInt64: JSONValue] = [:]
  var shutdown: Shutdown?
  /// The way out has come to its end.
  var isParted = false
  /// Another gateway's status was seen, and said.
  var hasSeenOther = false
  /// How often the gateway's own broker was connected.
  var connectionCount = 0
  private var timer: LoopTimer?
  /// The newest reply, or payload of a topic of the gateway's own; kept for its memory.
  var line: [UInt8] = []
  private let phases: Phases
  /// What the timer is armed for.
  var deadline: Moment?
  /// Clients of the control socket are to hear of their changes, when the commands have left.
  var owesReplies = false

  /// Called for every event of a command's life that somebody sees.
  package var onEvent: ((EventObject) -> Void)?
  /// Called for every command handed to the broker.
  package var onCommand: ((_ topic: String, _ payload: [UInt8], _ keys: [String]) -> Void)?
  /// Called when the connection to the gateway's own broker came or went.
  package var onConnection: ((Bool) -> Void)?

  /// - Throws: When the loop or the MQTT library cannot be set up; an absent broker is no error.
  package init(
    configuration: LoadedConfiguration,
    loop: EventLoop,
    log: Logger
  ) throws(OperationsError) {
    self.configuration = configuration.gateway
    registry = configuration.registry
    self.loop = loop
    self.log = log
    let gateway = configuration.gateway
    var settings = CommandStateMachine.Settings()
    settings.pendingLimit = gateway.limits.pending
    settings.lanes = gateway.machineLanes
    settings.firstMessage = .random(in: 0..<1 << 31)
    machine = CommandStateMachine(registry: registry, settings: settings)
    let brokers = gateway.brokers.keys.sorted()
    routes = RouteMachine(
      gateway.routes,
      brokers: brokers,
      ttl: gateway.ttl,
      limit: gateway.limits.pending
    )
    echo = TargetEcho(properties: registry.properties.count, devices: registry.devices.count)
    let announcer = gateway.discovery.map {
      DiscoveryAnnouncer(
        baseTopic: gateway.baseTopic,
        configuration: $0,
        version: Release.version
      )
    }
    surface = MQTTSurface(configuration: gateway, registry: registry, announcer: announcer)
    announcements = announcer.map { Announcements($0) }
    refusals = Refusals(log: log)
    tallies = GatewayTallies(devices: registry.devices.count)
    phases = Phases(loop)
    echoLoops = EchoLoopDetector(keys: registry.properties.count)
    identifiers = Identifiers(
      wallMilliseconds: WallClock.milliseconds(),
      now: EventLoop.now(),
      session: UInt16.random(in: 0...UInt16.max)
    )
    try makeLinks(brokers)
    timer = try loop.makeTimer(named: "due changes") { [unowned self] in timerFired() }
    loop.afterBatch = { [weak self] in self?.settleUp() }
  }

  deinit {
    for link in links {
      link.client.onState = nil
      link.client.onRetainedIgnored = nil
      link.client.onMessage = nil
      link.client.onOutcome = nil
    }
  }

  /// Opens the control socket and HTTP; nothing that comes is looked at before the loop runs.
  ///
  /// - Throws: When the control socket cannot be had, another gateway's lock included.
  package func listen() throws(OperationsError) {
    controlSocket = try ControlSocket(
      path: configuration.socket ?? ControlSocket.defaultPath(),
      gateway: self
    )
    http = try configuration.http.map { settings throws(OperationsError) in
      try HTTPSurface(settings, gateway: self)
    }
  }

  /// Gives them up again, when the start comes to nothing.
  package func stopListening() {
    controlSocket?.close()
    controlSocket = nil
    http?.close()
    http = nil
  }

  /// Starts connecting, and opens the control socket if ``listen()`` has not.
  ///
  /// - Throws: When the control socket cannot be had, another gateway's lock included.
  package func start() throws(OperationsError) {
    if controlSocket == nil { try listen() }
    for link in links { link.client.start() }
    settleUp()
  }

  /// The path of the control socket once started.
  package var socketPath: String? { controlSocket?.path }

  /// Whether the gateway's own broker is connected.
  package var isConnected: Bool { links[0].isConnected }

  /// Counts since the start.
  package var statistics: CommandStateMachine.Statistics { machine.statistics }

  /// Messages refused where no reply is possible.
  package var refusedMessages: UInt64 { refusals.total }

  /// Events and answers that a broker was away or too slow for.
  package var droppedMessages: UInt64 { links.reduce(0) { $0 + $1.droppedMessages } }

  /// What `get` shows of one key; `nil` for an unknown one.
  package func row(_ key: String) -> TargetRow? {
    (try? registry.index(of: key)).map { targetRow($0, at: EventLoop.now()) }
  }

  // MARK: - Changes

  /// Takes a change from a surface, after what is due has left.
  func take(
    _ change: CommandStateMachine.Change,
    of key: KeyIndex,
    at now: Moment,
    origin: ChangeOrigin? = nil,
    ttl: Duration? = nil,
    options: [JSONValue.Member]? = nil,
    skipsQuiet: Bool = false
  ) throws(ValidationError) {
    advanceIfDue(at: now)
    tallies.devices[registry.properties[Int(key.rawValue)].device].changes += 1
    if let journal { try admit(change, of: key, to: journal, at: now) }
    guard isRecorded else {
      return try machine.change(
        change,
        of: key,
        at: now,
        origin: origin,
        ttl: ttl,
        options: options,
        skipsQuiet: skipsQuiet
      )
    }
    let recorded = try? machine.value(after: change, of: key)
    try machine.change(
      change,
      of: key,
      at: now,
      origin: origin,
      ttl: ttl,
      options: options,
      skipsQuiet: skipsQuiet
    )
    if let recorded { record(recorded, of: key, at: now, origin: origin, skipsQuiet: skipsQuiet) }
  }

  /// A timer due at an instant fires before anything that arrives at that instant.
  func advanceIfDue(at now: Moment) {
    guard let deadline, deadline <= now else { return }
    advance(to: now)
  }

  // MARK: - After each batch

  private func timerFired() {
    deadline = nil
    advance(to: EventLoop.now())
  }

  func advance(to now: Moment) {
    machine.advance(to: now)
    routes.advance(to: now)
    echo.advance(to: now)
  }

  /// Hands out what the batch left to do, and arms the timer for what comes next.
  func settleUp() {
    guard !isParted else { return }
    let now = EventLoop.now()
    advance(to: now)  // Leading values, and those with no delay, leave with their batch.
    if journal != nil { _ = advanceJournal(at: now) }
    if !canReplyLater { distribute(at: now) }
    loop.enter(phases.publishing)
    // What became of earlier commands goes before the next ones, which would take all the room. On the
    // way out values come first: there may not be time for everything.
    if isConnected, shutdown == nil { links[0].sendMessages() }
    sendCommands(at: now)
    if advanceJournal(at: now) { sendCommands(at: now) }
    loop.enter(phases.telling)
    publishOwn(at: now)
    advanceShutdown(at: now)
    armTimer(after: now)
    // Commands that wait for acknowledgements leave with the next one.
    loop.isHurried = machine.hasReady && !links[0].client.canPublish
    http?.settle(at: now)
    controlSocket?.sendReplies()
  }

  /// Commands first; all that is told follows.
  private func sendCommands(at now: Moment) {
    publish(at: now)
    for link in links { link.client.flush() }
    distribute(at: now)
  }

  private func armTimer(after now: Moment) {
    var next = machine.nextDeadline(after: now)
    func consider(_ other: Moment?) {
      if let other { next = min(next ?? other, other) }
    }
    consider(routes.nextDeadline)
    consider(echo.nextDeadline)
    consider(shutdown?.deadline)
    consider(journal?.nextDeadline)
    guard next != deadline else { return }
    deadline = next
    timer?.arm(at: next)
  }

  /// Tells events to whoever listens and notes which targets to show.
  func distribute(at now: Moment) {
    owesReplies = false
    if isRecorded { recordAppliedSteps() }
    if !machine.changedKeys.isEmpty {
      var keys: [KeyIndex] = []
      swap(&keys, &machine.changedKeys)
      for key in keys {
        let device = registry.properties[Int(key.rawValue)].device
        if machine.takeNewTarget(of: key) {
          echo.changed(key, device: device, at: now)
        } else {
          echo.changedInfo(ofDevice: device, at: now)
        }
        http?.changed(key)
      }
      echo.advance(to: now)
      keys.removeAll(keepingCapacity: true)
      swap(&keys, &machine.changedKeys)  // The capacity goes back.
    }
    guard !machine.events.isEmpty else { return }
    tieClocks(at: now)
    var events: [CommandEvent] = []
    swap(&events, &machine.events)
    if let journal {
      record(events.span, in: journal, at: now)
    } else {
      let due = events.span
      for index in due.indices { tell(due[index]) }
    }
    guard machine.events.isEmpty else { return }
    events.removeAll(keepingCapacity: true)
    swap(&events, &machine.events)  // The capacity goes back.
  }

  /// Before events are told: the wall clock may have been set.
  func tieClocks(at now: Moment) {
    identifiers.tie(wallMilliseconds: WallClock.milliseconds(), now: now)
  }

  /// Everybody who sees all events: listeners in memory, watchers on the control socket, streams.
  func updateWatching() {
    tellOwed()  // To those who listened then.
    machine.isWatched =
      onEvent != nil || (controlSocket?.hasWatchers ?? false) || (http?.isWatching ?? false)
  }

  /// What is done after each batch, named for whoever watches the loop.
  private struct Phases {
    let publishing: LoopPhase
    let telling: LoopPhase

    init(_ loop: EventLoop) {
      publishing = loop.phase("publishing commands")
      telling = loop.phase("publishing targets and events")
    }
  }

  /// Makes every event visible to ``onEvent``.
  package func watchAll(_ handler: @escaping (EventObject) -> Void) {
    onEvent = handler
    updateWatching()
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Configuration
package import Control
import Devices
import Durability
package import Engine
package import GatewayCore
import Glibc
package import Import
package import Journal
import LastOut
import MQTT
package import Operations
import Values

/// The host of a ``GatewayCore``: it owns the event loop's batch, the surfaces, the journal's
/// thread and reload, and has no opinion.
///
/// Surfaces (MQTT, control socket, HTTP) translate bytes into calls of the core. After each batch
/// of events ``step()`` performs what the core decided.
package final class GatewayHost {
  let context: GatewayContext
  let mqtt: MQTTSurface
  let events: EventDistributor
  private(set) lazy var requests = RequestHandler(context, events: events, host: self)
  private(set) var controlSocket: ControlSocket? { didSet { events.controlSocket = controlSocket } }
  private(set) var http: HTTPSurface? { didSet { events.http = http } }
  /// This gateway as a member of a cluster; `nil` without one.
  private(set) var cluster: ClusterMember? { didSet { events.cluster = cluster } }
  /// Where accepted values outlive this process: the journal, or the cluster; `nil` without either.
  private(set) var store: (any ValueStore)?
  let reloads: GatewayReload
  /// What devices reported, as far as it outlives this process; `nil` without a journal.
  private var history: HistoryFile?
  /// Follows what is announced; `nil` without `import:`.
  private(set) var imports: GatewayImport?
  /// Receives the report at the end of the shutdown.
  private var onEnd: ((ShutdownReport) -> Void)?
  private var timer: LoopTimer?
  private var deadline: Moment?
  /// What runs after each batch, as the loop's watchdog names it.
  private let publishing: LoopPhase
  private let emitting: LoopPhase

  /// Called when the connection to the gateway's own broker was made or ended.
  package var onConnection: ((Bool) -> Void)?
  /// Called when the gateway cannot be a member of its cluster, with the reason: it must end.
  package var onRefusal: ((String) -> Void)?

  /// - Throws: When the loop or the MQTT library cannot be set up; an absent broker is no error.
  package init(
    configuration: LoadedConfiguration,
    loop: EventLoop,
    log: Logger
  ) throws(OperationsError) {
    context = GatewayContext(configuration, loop: loop, log: log)
    mqtt = try MQTTSurface(context)
    events = EventDistributor(context, mqtt: mqtt)
    reloads = try GatewayReload(context, mqtt: mqtt, configuration: configuration)
    publishing = loop.phase("publishing commands")
    emitting = loop.phase("publishing targets and events")
    timer = try loop.makeTimer(named: "due changes") { [unowned self] in
      deadline = nil
      context.core.advance(to: EventLoop.now())
    }
    mqtt.onConnection = { [unowned self] isUp in
      reloads.connectionChanged()
      if !isUp { imports?.connectionEnded() }
      cluster?.brokerChanged(isUp: isUp)
      http?.streams.brokerConnectionChanged()
      onConnection?(isUp)
    }
    mqtt.onRejection = { [unowned self] in events.deliver($0, ofDevice: $1) }
    mqtt.onAvailability = { [unowned self] in
      cluster?.rows.availabilityChanged(of: $0)
      http?.streams.availabilityChanged(ofDevice: $0)
    }
    reloads.onReplaced = { [unowned self] in
      cluster?.devicesReplaced(digest: reloads.digest)
      imports?.updateGroups()
      history?.restore()
      http?.streams.devicesChanged()
    }
    reloads.onFinish = { [unowned self] in emitReady() }
    reloads.onRead = { [unowned self] in imports?.filesRead(at: EventLoop.now()) }
    loop.afterBatch = { [unowned self] in step() }
  }

  deinit { context.loop.afterBatch = nil }

  // MARK: - Start

  /// Opens the control socket and HTTP; nothing is received before the loop runs.
  ///
  /// - Throws: When the control socket cannot be opened, another gateway's lock included.
  package func listen() throws(OperationsError) {
    controlSocket = try openSocket()
    http = try context.configuration.http.map { settings throws(OperationsError) in
      try HTTPSurface(settings, gateway: self)
    }
  }

  private func openSocket() throws(OperationsError) -> ControlSocket {
    if let path = context.configuration.socket {
      return try ControlSocket(path: path, gateway: self)
    }
    do throws(OperationsError) {
      return try ControlSocket(path: SocketPath.standard(), gateway: self)
    } catch {
      guard [EACCES, EPERM, EROFS].contains(error.code) else { throw error }
      throw OperationsError(
        call: error.call,
        code: error.code,
        reason: "\(error.reason); set XDG_RUNTIME_DIR to a folder of this user, or name a path for"
          + " the control socket with --socket"
      )
    }
  }

  /// Closes both again, when the start fails.
  package func stopListening() {
    controlSocket?.close()
    controlSocket = nil
    http?.close()
    http = nil
  }

  /// Opens the journal that the configuration names, if any; call it before ``start()``.
  ///
  /// A disk that cannot be written, or a damaged file, is no error: the log says so.
  ///
  /// - Throws: If the file must not be used: a newer format, another program's, in use.
  package func openJournal() throws(JournalRefusal) {
    guard let wanted = context.configuration.journal else { return }
    let waker: Waker
    do throws(OperationsError) {
      // The handler is empty: the step after the batch dequeues the results.
      waker = try context.loop.makeWaker(named: "journal") {}
    } catch {
      throw .noThread(path: wanted.path, reason: error.description)
    }
    var settings = JournalPlan.Settings()
    settings.commit = wanted.commit
    let thread = try JournalThread(
      path: wanted.path,
      settings: settings,
      decode: { DurableValue($0) },
      onResult: { waker.wake() }
    )
    context.core.openStore(thread.plan, path: wanted.path)
    store = thread
    do throws(OperationsError) {
      history = try HistoryFile(besideJournal: wanted.path, context)
    } catch {
      throw .noThread(path: wanted.path, reason: error.description)
    }
  }

  /// Joins the cluster that the configuration names, if any; call it before ``start()``.
  ///
  /// Servers that cannot be reached are no error: the log says so.
  ///
  /// - Throws: When libnats is missing.
  package func openCluster() throws(EngineRefusal) {
    guard let settings = context.configuration.cluster, let sessions = mqtt.sessions else { return }
    let member = try ClusterMember(
      settings,
      context,
      mqtt: mqtt,
      sessions: sessions,
      digest: reloads.digest
    )
    connect(member)
    cluster = member
    store = member.store
    context.onElsewhere = { [unowned self] values, origin in
      passOn(values, from: origin, at: EventLoop.now())
    }
    events.updateObservers()
    member.start()
  }

  private func connect(_ member: ClusterMember) {
    member.onRequest = { [unowned self] in requests.performHere($0, for: $1, line: 1) }
    member.passed.onOwn = { [unowned self] in requests.performHere($0, for: $1, line: 1) }
    member.onRefusal = { [unowned self] in onRefusal?($0) }
    member.onRejected = { [unowned self] in events.deliver($0, at: EventLoop.now()) }
    member.onWaitEnd = { [unowned self] in events.endWait(of: $0) }
    member.onOwnership = { [unowned self] in mqtt.ownershipChanged(of: $0, isDriven: $1) }
    member.rows.onChange = { [unowned self] in http?.streams.changed($0) }
    member.rows.onAvailability = { [unowned self] in
      http?.streams.availabilityChanged(ofDevice: $0)
    }
    member.events.onEvent = { [unowned self] in events.deliverForeign($0) }
    member.events.onWanted = { [unowned self] in events.updateObservers() }
  }

  /// Starts connecting, and opens the control socket if ``listen()`` has not.
  ///
  /// - Throws: When the control socket cannot be opened, another gateway's lock included.
  package func start() throws(OperationsError) {
    if controlSocket == nil { try listen() }
    mqtt.start()
    step()
  }

  // MARK: - After each batch

  /// Performs everything that the core decided, and arms the timer.
  private func step() {
    guard !context.core.isEnded else { return }
    let now = EventLoop.now()
    context.loop.enter(publishing)
    // Events of earlier commands are sent before the next commands, which would use all the room.
    // In a shutdown values are sent first: there may not be time for everything.
    if isConnected, !context.core.isShuttingDown { mqtt.own.sendMessages() }
    mqtt.sessions?.publishWaiting()
    reloads.advance()
    imports?.advance(to: now)
    history?.advance(to: now)
    _ = cluster?.advance(to: now)
    repeat {
      receiveStoreResults(at: now)
      while let effect = context.core.nextEffect(at: now, host: mqtt.hostState) {
        perform(effect, at: now)
      }
    } while !context.core.isEnded && cluster?.advance(to: now) ?? false
    guard !context.core.isEnded else { return }
    context.loop.enter(emitting)
    mqtt.publishWaiting()
    cluster?.endBatch(at: now)
    armTimer(after: now)
    // Commands that wait for acknowledgements are sent with the next one.
    context.loop.isHurried = context.core.isHurried && !mqtt.own.client.canPublish
    controlSocket?.isDiskBehind = context.core.isStoreBehind
    http?.advance(to: now)
    controlSocket?.sendReplies()
  }

  /// Emits what is ready now, so that a direct reply keeps the order of its client's requests.
  func emitReady() {
    let now = EventLoop.now()
    while let effect = context.core.nextReply(at: now) { perform(effect, at: now) }
  }

  private func receiveStoreResults(at now: Moment) {
    guard let store else { return }
    for result in store.dequeueResults() { context.core.storeFinished(result, at: now) }
    if store.isClosed { context.core.storeClosed() }
  }

  private func armTimer(after now: Moment) {
    let files = Moment.earlier(imports?.deadline, history?.deadline)
    let work = Moment.earlier(reloads.deadline, files)
    let next = Moment.earlier(context.core.nextDeadline(after: now), work)
    guard next != deadline else { return }
    deadline = next
    timer?.arm(at: next)
  }

  // MARK: - Shutdown

  /// Stops accepting changes and flushes what is pending.
  ///
  /// `completion` receives the report, at the latest after `shutdown.timeout`. A second call ends
  /// at once.
  package func beginShutdown(completion: @escaping (ShutdownReport) -> Void) {
    if !context.core.isShuttingDown {
      onEnd = completion
      controlSocket?.stopListening()
      http?.stopListening()
      mqtt.own.makeRoom(forCommands: context.core.pendingCount)
    }
    context.core.beginShutdown(at: EventLoop.now())
    step()
  }

  /// Closes everything and delivers the report.
  func end(_ report: ShutdownReport) {
    controlSocket?.close()
    http?.close()
    mqtt.close()
    cluster?.close()
    history?.close()
    onEnd?(report)
  }
}

/// Performing what the core decided.
extension GatewayHost {
  func perform(_ effect: Effect, at now: Moment) {
    switch effect {
    case .write(let work): store?.submit(work)
    case .readClock: context.core.clockRead(SystemClock.read())
    case .publish(let publish): mqtt.publish(publish, at: now)
    case .requestState(let request): mqtt.request(request)
    case .forward(let publish, let broker): mqtt.forward(publish, to: broker)
    case .passOn(let change): passOn(change, at: now)
    case .endElsewhere(let change): passOn(change, at: now)
    case .emit(let event): events.deliver(event, at: now)
    case .record(let change):
      controlSocket?.sendToRecorders(change, key: context.registry[change.key].key)
    case .stateChanged(let key):
      http?.streams.changed(key)
      cluster?.rows.changed(key)
    case .publishState(let item, let payload, let place):
      if !mqtt.publishState(item, payload) { context.core.statePutBack(place) }
    case .definitionsReplaced: reloads.replaceDefinitions()
    case .reloaded: reloads.coreFinished()
    case .storeHealth(let fault):
      let store = cluster == nil ? "Journal" : "Cluster's engine"
      Notify.status(fault.map { "\(store) degraded: \($0)" } ?? "Running")
      mqtt.publishStatus()
    case .resumed(let value):
      context.log.debug(
        "Journalled value resumed",
        ["key": context.registry[value.key].key, "value": Excerpt.of(value.value.json)]
      )
    case .log(let entry): context.log.log(entry.level.logLevel, entry.message, entry.fields)
    case .closeStore: store?.beginClosing()
    case .sayOffline: mqtt.publishOffline()
    case .end(let report): end(report)
    }
  }
}

extension LogEntry.Level {
  fileprivate var logLevel: Logger.Level {
    switch self {
    case .info: .info
    case .warning: .warning
    case .error: .error
    }
  }
}

/// What a program that runs a gateway can see of it.
extension GatewayHost {
  /// The path of the control socket once started.
  package var socketPath: String? { controlSocket?.path }

  /// Whether the gateway's own broker is connected.
  package var isConnected: Bool { mqtt.own.isConnected }

  /// Counts since the start.
  package var statistics: CommandStatistics { context.core.statistics }

  /// What `get` shows of one key; `nil` for an unknown one.
  package func row(_ key: String) -> TargetRow? {
    (try? context.registry.index(of: key)).map {
      TargetRow($0, in: context.core, at: EventLoop.now())
    }
  }

  /// Called for every command handed to the broker.
  package var onCommand: ((_ topic: String, _ payload: [UInt8], _ keys: [String]) -> Void)? {
    get { mqtt.onCommand }
    set { mqtt.onCommand = newValue }
  }

  /// Sets how the configuration is read again; without it, a reload is refused.
  ///
  /// `read` is called on another thread.
  package func enableReload(
    reading read: @escaping @Sendable () -> Result<LoadedConfiguration, ConfigurationFailure>
  ) { reloads.read = read }

  /// Follows what is announced if the settings want it: `importer` imports into the files that a
  /// reload reads.
  ///
  /// - Throws: When the loop cannot be woken from another thread.
  package func enableImport(_ importer: DeviceImport) throws(OperationsError) {
    imports = try GatewayImport(context, reloads: reloads, importer: importer)
    guard let imports else { return }
    mqtt.onAnnouncement = { [unowned imports] in imports.receive($0, $1, at: $2) }
  }

  /// Reads the configuration again and adopts it; `done` is called once, with the outcome.
  package func reload(_ done: @escaping (Result<ReloadReport, ReloadRefusal>) -> Void) {
    reloads.reload(done)
  }

  /// Calls `handler` for every event of every command.
  package func watchAll(_ handler: @escaping (EventObject) -> Void) {
    events.onEvent = handler
    events.updateObservers()
  }
}

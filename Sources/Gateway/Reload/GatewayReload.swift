// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
package import Configuration
package import Control
import Devices
import GatewayCore
internal import JSON
import LastOut
import MQTT
import Operations
import Values

/// Other devices and policies while the gateway runs: what is pending stays.
///
/// The files are read and compared on another thread, and refused as a whole if anything in them is
/// wrong. Then each step of the event loop does one bounded step of the reload, here and in the
/// core.
///
/// One reload at a time: a request that arrives during one gets the result of the next, since the
/// files may have changed after the first began.
final class GatewayReload {
  /// What came of reading and comparing.
  private typealias Outcome = Result<PreparedReload, ConfigurationFailure>
  typealias Completion = (Result<ReloadReport, ReloadRefusal>) -> Void

  private static let stopping = ReloadRefusal(
    error: ErrorReply(.stopping, "the gateway is about to end")
  )

  private let context: GatewayContext
  private let mqtt: MQTTSurface
  /// Reads the configuration again, on another thread; without it, a reload is refused.
  var read: (@Sendable () -> Result<LoadedConfiguration, ConfigurationFailure>)?
  /// Reads and compares definitions on another thread.
  private var work: BackgroundWork<Outcome>?
  /// Whether a reload is in progress.
  private(set) var isBusy = false
  /// The reload in progress, once its files are read.
  private var progress: ReloadProgress?
  /// Who waits for the reload in progress, and for the one after it.
  private var waiting: [Completion] = []
  private var waitingForNext: [Completion] = []

  /// The digest of the device files in use.
  private(set) var digest: UInt64
  /// The hash of each file as it was read, or written by an import since, by path.
  private(set) var hashes: [String: Int]
  /// How often the files were read again.
  private(set) var count = 0

  /// Called when the new definitions count.
  var onReplaced: (() -> Void)?
  /// Called before the reload is reported: what it ended is reported first.
  var onFinish: (() -> Void)?
  /// Called when the files were read again, and count.
  var onRead: (() -> Void)?

  /// - Throws: When the loop cannot be woken from another thread.
  init(
    _ context: GatewayContext,
    mqtt: MQTTSurface,
    configuration: LoadedConfiguration
  ) throws(OperationsError) {
    self.context = context
    digest = configuration.digest
    hashes = configuration.hashes
    self.mqtt = mqtt
    work = try BackgroundWork(named: "reload", loop: context.loop) { [weak self] in
      self?.apply($0)
    }
  }

  /// The files that it reads; `nil` if the gateway was not started from files.
  var files: GatewayFiles? {
    guard read != nil else { return nil }
    let configuration = context.configuration
    return GatewayFiles(
      settings: configuration.settingsFile,
      devices: configuration.devicesDirectory,
      stateDevices: configuration.stateDevices.flatMap { WorkingFolder.exists($0) ? $0 : nil }
    ).absolute
  }

  /// An import has written files.
  func wrote(_ files: [String: Int]) { hashes.merge(files) { $1 } }

  /// When the next step has something to do; `nil` when nothing waits.
  var deadline: Moment? {
    if progress != nil { return .zero }
    return isBusy ? nil : context.arrivals.deadline
  }

  // MARK: - Requests

  /// Reads the configuration again and adopts it; `done` is called once, with the outcome.
  func reload(_ done: @escaping Completion) {
    guard !context.core.isShuttingDown else {
      return done(.failure(Self.stopping))
    }
    guard read != nil else {
      let reason = "this gateway was not started from files: there is nothing to reload"
      return done(.failure(.init(error: ErrorReply(.unsupported, reason))))
    }
    Notify.reloading()
    waitingForNext.append { result in
      done(result)
      Notify.ready()
    }
    if !isBusy { readFiles() }
  }

  /// Reloads for a client of the control socket.
  func reload(for requester: any Requester, id: JSONValue?, line: Int) {
    requester.beginWait()
    reload { [unowned self] result in
      switch result {
      case .success(var report):
        report.files = files
        requester.send(.reloaded(report, id: id))
      case .failure(var refusal):
        refusal.error.line = line
        requester.send(.failure(refusal.error, id: id))
      }
      requester.endWait()
    }
  }

  // MARK: - Reading on another thread

  private func readFiles() {
    guard let read else { preconditionFailure("Nothing is read where there are no files.") }
    swap(&waiting, &waitingForNext)
    prepare { base in read().map { PreparedReload($0, continuing: base) } }
  }

  /// Compares on another thread what is in use with what `job` makes of it.
  private func prepare(_ job: @escaping @Sendable (PreparedReload.Base) -> Outcome) {
    isBusy = true
    let base = PreparedReload.Base(
      configuration: context.configuration,
      registry: context.registry,
      subscriptions: mqtt.topics.subscriptions,
      announcer: mqtt.discovery?.announcer,
      settings: context.settings,
      sources: context.arrivals.sources,
      created: context.arrivals.created,
      restart: context.restart,
      warnings: context.warnings,
      digest: digest
    )
    do throws(OperationsError) {
      try work?.begin { job(base) }
    } catch {
      // Without another thread the loop waits for it.
      apply(job(base))
    }
  }

  /// Begins to continue with a configuration that was read, or refuses it.
  private func apply(_ outcome: Outcome) {
    switch outcome {
    case .success where context.core.isShuttingDown: end(.failure(Self.stopping))
    case .success(let prepared):
      progress = ReloadProgress(
        prepared,
        replacing: context.registry,
        at: EventLoop.now()
      )
    case .failure(let failure):
      context.log.error(
        "Reload refused; the previous configuration stays in effect",
        ["problems": String(failure.problems.count)]
      )
      for problem in failure.problems {
        context.log.error("Mistake in the configuration", ["problem": problem.description])
      }
      let refusal = ReloadRefusal(error: Self.reply(to: failure), problems: failure.problems)
      end(.failure(refusal))
    }
  }

  /// Ends the reload in progress; the next one begins if somebody asked for it.
  private func end(_ result: Result<ReloadReport, ReloadRefusal>) {
    var done: [Completion] = []
    swap(&done, &waiting)
    for body in done { body(result) }
    isBusy = false
    if !waitingForNext.isEmpty { readFiles() }
  }

  private static let shownProblems = 20

  private static func reply(to failure: ConfigurationFailure) -> ErrorReply {
    var lines = ["refused; the previous configuration stays in effect:"]
    lines += failure.problems.prefix(shownProblems).map(\.description)
    let rest = failure.problems.count - shownProblems
    if rest > 0 { lines.append("and \(rest) more, in the gateway's log") }
    return ErrorReply(.badConfiguration, lines.joined(separator: "\n"))
  }

  private func logReload(_ report: ReloadReport) {
    context.log.info(
      "Reloaded",
      [
        "devices": String(report.devices), "keys": String(report.keys),
        "added": String(report.added.count), "removed": String(report.removed.count),
        "changed": String(report.changed.count),
      ]
    )
    for warning in report.warnings {
      context.log.warning("Configuration warning", ["problem": warning])
    }
    if !report.restart.isEmpty {
      context.log.warning(
        "Changed sections apply only after a restart",
        ["sections": report.restart.joined(separator: ", ")]
      )
    }
  }

  // MARK: - Steps

  /// The connection to the gateway's own broker was made or ended.
  func connectionChanged() { progress?.connectionChanged() }

  /// The core has finished its part.
  func coreFinished() { progress?.isCoreDone = true }

  /// Does one bounded step of the host's part of a reload.
  func advance() {
    guard let reload = progress else { return addArrivals() }
    switch reload.phase {
    case .mapping:
      guard reload.buildMap() else { return }
      reload.phase = .preparing
      context.core.settings.awaited = AwaitedDevices(reload.prepared.sources.map(\.template))
      context.core.beginReload(
        reload.prepared.registry,
        lanes: reload.prepared.configuration.lanes
      )
    case .preparing: break  // Until the core replaces the definitions.
    case .subscribing:
      if receiveKept(reload) { return }
      mqtt.updateSubscriptions(reload)
      if reload.isSubscribed, reload.isCoreDone { finishReload(reload) }
    case .freeing:
      guard reload.free() else { return }
      // What was in use before is freed on another thread, so that the event loop does not wait.
      let old = reload.old
      try? WorkerThread { withExtendedLifetime(old) {} }.detach()
      progress = nil
    }
  }

  /// The core continues with the new definitions, and so do the surfaces.
  func replaceDefinitions() {
    guard let reload = progress else { return }
    let configuration = reload.prepared.configuration
    context.core.settings.shutdownTimeout = configuration.shutdownTimeout
    context.configuration = configuration
    digest = reload.prepared.digest
    context.settings = reload.prepared.settings
    context.restart = reload.prepared.report.restart
    context.warnings = reload.prepared.report.warnings
    context.devicesReloaded()
    mqtt.definitionsReplaced(reload)
    onReplaced?()
    arrivalsReplaced(by: reload)
    reload.phase = .subscribing
    if !mqtt.own.isConnected { reload.connectionChanged() }
  }

  private func finishReload(_ reload: ReloadProgress) {
    onFinish?()
    reload.phase = .freeing
    if let hashes = reload.prepared.hashes {
      logReload(reload.prepared.report)
      self.hashes = hashes
      count += 1
      onRead?()
    }
    end(.success(reload.prepared.report))
  }

  // MARK: - Devices that messages named

  /// How many messages of new devices one step receives.
  private static let messagesPerStep = 250

  /// Begins to add new devices, unless a reload is in progress.
  private func addArrivals() {
    guard context.arrivals.deadline != nil, !context.core.isShuttingDown, !isBusy else { return }
    let arrivals = context.arrivals.popNew(at: EventLoop.now())
    guard !arrivals.isEmpty else { return }
    prepare { base in .success(PreparedReload(adding: arrivals, to: base)) }
  }

  /// The definitions of a reload count: so do the devices that it adds, and its templates.
  private func arrivalsReplaced(by reload: ReloadProgress) {
    let prepared = reload.prepared
    guard let arrivals = prepared.arrivals else {
      return context.arrivals.replaceSources(prepared.sources)
    }
    let devices = DeviceArrivals.devices(arrivals, of: prepared.sources)
    let now = EventLoop.now()
    reload.hasMessages = true
    context.arrivals.added(arrivals, after: reload.startedAt.duration(to: now), at: now)
    context.log.info(
      "Devices appeared",
      ["count": String(devices.count), "first": devices.first?.id ?? "none"]
    )
  }

  /// Receives some of the messages that waited for the devices of a reload; `false` once none is
  /// left.
  private func receiveKept(_ reload: ReloadProgress) -> Bool {
    guard reload.hasMessages else { return false }
    let messages = context.arrivals.popMessages(Self.messagesPerStep, in: context.registry)
    mqtt.receiveKept(messages, at: EventLoop.now())
    if messages.isEmpty {
      reload.hasMessages = false
      context.arrivals.finish(in: context.registry)
    }
    return !messages.isEmpty
  }
}

/// Why a configuration was not taken.
package struct ReloadRefusal: Error {
  package var error: ErrorReply
  package var problems: [ConfigurationProblem] = []
}

/// The host's part of a reload, in steps of bounded size.
///
/// First a new topic map is built beside the one in use. Then the core continues with the new
/// definitions while subscriptions follow. At last the memory of the old map is freed.
final class ReloadProgress {
  enum Phase {
    /// The new topic map is being built; nothing has changed yet.
    case mapping
    /// The core prepares the new definitions.
    case preparing
    /// The new definitions count; subscriptions follow.
    case subscribing
    /// The reload has finished; memory is being freed.
    case freeing
  }

  /// How many topics, subscriptions or requests one step handles at most.
  static let limit = 1000

  let prepared: PreparedReload
  var phase = Phase.mapping
  /// The new map until the definitions are replaced, then the old one.
  var topics: TopicMap
  /// Keeps the old definitions until everything else has finished with them.
  let old: Registry
  var added: ArraySlice<Subscription>
  var removed: ArraySlice<String>
  /// Keys whose states the gateway asks for.
  var requests: ArraySlice<KeyIndex>
  /// Whether the core has finished.
  var isCoreDone = false
  /// When it began.
  let startedAt: Moment
  /// Whether messages wait for devices that it has added.
  var hasMessages = false

  init(_ prepared: PreparedReload, replacing old: Registry, at now: Moment = .zero) {
    startedAt = now
    self.prepared = prepared
    self.old = old
    topics = TopicMap(
      configuration: prepared.configuration,
      subscriptions: prepared.subscriptions
    )
    added = prepared.added[...]
    removed = prepared.removed[...]
    requests = prepared.requests[...]
  }

  /// Builds some of the new map; `true` once it is complete.
  func buildMap() -> Bool { topics.add(Self.limit / 4, of: prepared.registry) }

  /// Whether nothing is left to subscribe to, to give up or to ask for.
  var isSubscribed: Bool { added.isEmpty && removed.isEmpty && requests.isEmpty }

  /// The connection was made or ended: all states of the topics in use are requested on each
  /// connection.
  func connectionChanged() { if phase == .subscribing { requests = [] } }

  /// Frees some of the old map; `true` once nothing is left.
  func free() -> Bool { topics.free(Self.limit * 10) }
}

extension ArraySlice {
  /// Removes and returns the first elements, `limit` of them at most.
  mutating func popFirst(_ limit: Int) -> ArraySlice {
    let first = prefix(limit)
    self = dropFirst(limit)
    return first
  }
}

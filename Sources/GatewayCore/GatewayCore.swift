// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Devices
package import Durability
import JSON
package import LastOut
package import Routing
import Values

/// Decides everything a gateway does: events and the time go in, effects come out.
///
/// The host translates what surfaces receive into calls of this type and, after each batch,
/// performs the effects of one step:
///
/// ```swift
/// while let effect = core.nextEffect(at: now, host: state) { perform(effect) }
/// armTimer(core.nextDeadline(after: now))
/// ```
///
/// No call performs anything itself, so none of them re-enters the core. The order of effects
/// within a step is that of ``StepStage``.
package struct GatewayCore: ~Copyable {
  var commands: CommandStateMachine
  /// `nil` without a journal.
  var durability: DurabilityGate?
  var routes: RouteMachine
  var states: StatePublisher
  var rejections = RejectionLog()
  /// What devices reported over the last hours.
  var reports = ReportHistory()
  var loops: FeedbackLoopDetector
  /// Commands of groups that have not ended.
  var groups = GroupCommands()
  /// When the message of a group may carry values again for which nobody named the group.
  var carriesAgain = Moment.zero
  /// Devices that are away, and what they get back.
  var restorations = Restorations()
  /// The devices that other gateways of a cluster drive.
  var elsewhere = DevicesElsewhere()
  var shutdown: Shutdown?
  package var settings: GatewayCoreSettings
  package let identifiers: CommandIdentifiers
  /// Whether someone wants ``Effect/stateChanged(_:)``.
  package var isStateWatched = false
  /// Whether the gateway's own broker is connected.
  package internal(set) var isConnected = false

  var stage = StepStage.idle
  var outbox = Outbox()
  /// Whether ``Effect/end(_:)`` was returned; nothing follows it.
  package internal(set) var isEnded = false

  /// - Parameters:
  ///   - registry: The devices.
  ///   - settings: What the configuration says beside them.
  ///   - identifiers: How commands without an identifier of their own are named.
  package init(registry: Registry, settings: GatewayCoreSettings, identifiers: CommandIdentifiers) {
    self.settings = settings
    self.identifiers = identifiers
    commands = CommandStateMachine(registry: registry, settings: settings.commands)
    routes = RouteMachine(
      settings.routes,
      brokers: settings.brokers,
      ttl: settings.routeTTL,
      limit: settings.commands.pendingLimit,
      payloadLimit: settings.routePayload
    )
    states = StatePublisher(
      properties: registry.properties.count,
      devices: registry.devices.count
    )
    loops = FeedbackLoopDetector(keys: registry.properties.count)
  }

  /// Makes accepted values durable from now on.
  ///
  /// Call it before the first change. Values that an earlier process left are resumed by the next
  /// steps.
  ///
  /// - Parameters:
  ///   - plan: What the journal's file holds.
  ///   - path: The file, as the log names it.
  ///   - isShared: Whether the store is that of a cluster: values are taken over from other
  ///     gateways, with a new quiet period, since a hand may still be turning.
  package mutating func openStore(_ plan: JournalPlan, path: String, isShared: Bool = false) {
    commands.log.isJournalled = true
    durability = DurabilityGate(
      plan: plan,
      path: path,
      registry: registry,
      awaiting: settings.awaited,
      settlesResumed: isShared,
      identifiers: identifiers,
      limit: settings.commands.pendingLimit
    )
  }

  // MARK: - The store

  /// What became of ``Effect/write(_:)``.
  package mutating func storeFinished(_ result: JournalResult, at now: Moment) {
    let registry = commands.registry
    durability?.finished(result, in: registry, at: now)
  }

  /// The answer to ``Effect/readClock``.
  package mutating func clockRead(_ clock: JournalClock) { durability?.judge(clock) }

  /// The answer to ``Effect/closeStore``.
  package mutating func storeClosed() { durability?.closed() }

  // MARK: - State

  package var registry: Registry { commands.registry }

  /// Whether a shutdown has begun.
  package var isShuttingDown: Bool { shutdown != nil }

  /// When the next step has something to do; `nil` when nothing waits for time.
  package func nextDeadline(after now: Moment) -> Moment? {
    guard !isEnded else { return nil }
    if isReloading { return .zero }
    let accepted = Moment.earlier(commands.nextDeadline(after: now), durability?.nextDeadline)
    let messages = Moment.earlier(routes.nextDeadline, states.nextDeadline)
    return Moment.earlier(Moment.earlier(accepted, messages), shutdown?.deadline)
  }

  /// Whether commands would be sent at once if the broker accepted another message.
  package var isHurried: Bool { commands.sendQueue.hasReady }

  // MARK: - Observers

  /// Whether someone receives every event of every command.
  package var isWatched: Bool {
    get { commands.log.isWatched }
    set { commands.log.isWatched = newValue }
  }

  /// From now on every event is kept for a checker, as it was decided, before it waits for the disk.
  package mutating func keepTranscript() { outbox.transcript = [] }

  /// The events since the last call.
  package mutating func takeTranscript() -> [CommandEvent] {
    let found = outbox.transcript ?? []
    if !found.isEmpty { outbox.transcript = [] }
    return found
  }

  /// Whether someone records accepted changes.
  package var isRecorded: Bool {
    get { commands.recordsAppliedSteps }
    set {
      commands.recordsAppliedSteps = newValue
      if !newValue { commands.appliedSteps = [] }
    }
  }

  // MARK: - Time

  /// Moves on everything that is due.
  ///
  /// A timer that is due at an instant fires before anything that arrives at that instant, so every
  /// change, report and routed message first moves on the part that receives it.
  package mutating func advance(to now: Moment) {
    commands.advance(to: now)
    routes.advance(to: now)
    states.advance(to: now)
  }
}

/// Continuing with other devices and policies, one bounded step of the reload in each step.
///
/// Changes, reports, disconnects and a shutdown may come in between. They meet the old definitions
/// until ``Effect/definitionsReplaced``, and the new ones from then on.
extension GatewayCore {
  package var isReloading: Bool { commands.isReloading }

  /// Continues with another registry, which continues this one, and other lanes.
  ///
  /// What is pending stays. ``Effect/reloaded`` follows once no key has a value left that was not
  /// checked against its new definition.
  package mutating func beginReload(
    _ registry: Registry,
    lanes: [String: LaneLimits]
  ) {
    setBridgeGroups([])
    commands.beginReload(registry, lanes: lanes)
  }

  /// Asks for the states of these keys, after their topics were subscribed to.
  package mutating func requestStates(of keys: some Sequence<KeyIndex>) {
    commands.requestStates(of: keys)
  }

  mutating func continueReload(at now: Moment) -> Effect? {
    guard isReloading else { return nil }
    defer { collectOutcomes(at: now) }
    switch commands.continueReload(keys: settings.keysPerReloadStep, at: now) {
    case .prepared(let keys, let devices): makeRoom(forKeys: keys, devices: devices)
    case .replaced:
      let registry = registry
      durability?.replaceDevices(registry, awaiting: settings.awaited)
      return .definitionsReplaced
    case .migrated: break
    case .finished:
      commands.refreshAllGroups(at: now)
      return .reloaded
    }
    return nil
  }

  private mutating func makeRoom(forKeys keys: Int, devices: Int) {
    states.extend(properties: keys, devices: devices)
    loops.extend(keys: keys)
    durability?.extend(toKeys: keys)
  }
}

/// What a ``GatewayCore`` is configured with beside the devices.
package struct GatewayCoreSettings: Sendable {
  package var commands = CommandSettings()
  package var routes: [RouteConfiguration] = []
  /// The names of the brokers beside the gateway's own, in the order of their numbers from 1.
  package var brokers: [String] = []
  /// How long a routed message waits for an absent broker.
  package var routeTTL: Duration = .seconds(60)
  /// ``RouteMachine/payloadLimit``.
  package var routePayload = Int.max
  package var shutdownTimeout: Duration = .seconds(10)
  /// Devices that may appear; those of a reload count once it replaces the definitions.
  package var awaited = AwaitedDevices()
  /// How many keys one step of a reload looks at, at most.
  package var keysPerReloadStep = 1000

  package init() {}
}

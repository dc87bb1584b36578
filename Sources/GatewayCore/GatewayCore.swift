// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Devices
package import Durability
package import LastOut
package import Routing

/// Decides everything a gateway does: events and the time go in, effects come out.
///
/// The host translates what surfaces receive into calls of this type and, after each batch, performs
/// the effects of one step:
///
/// ```swift
/// while let effect = core.nextEffect(at: now, host: state) { perform(effect) }
/// armTimer(core.nextDeadline(after: now))
/// ```
///
/// No call performs anything itself, so none of them re-enters the core. The order of effects within
/// a step is that of ``StepStage``.
package struct GatewayCore: ~Copyable {
  package var pipeline: CommandPipeline
  package var routes: RouteMachine
  package var states: StatePublisher
  package internal(set) var rejections = RejectionLog()
  /// What devices reported over the last hours.
  package internal(set) var reports = ReportHistory()
  package internal(set) var loops: FeedbackLoopDetector
  /// Commands of groups that have not ended.
  var groups = GroupCommands()
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
    pipeline = CommandPipeline(registry: registry, settings: settings.commands)
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
  ///   - isShared: Whether the store is that of a cluster: values are taken over from other gateways,
  ///     with a new quiet period, since a hand may still be turning.
  package mutating func openStore(_ plan: JournalPlan, path: String, isShared: Bool = false) {
    pipeline.openStore(
      plan,
      path: path,
      awaiting: settings.awaited,
      isShared: isShared,
      identifiers: identifiers
    )
  }

  package var commands: CommandStateMachine { _read { yield pipeline.commands } }

  /// `nil` without a journal.
  package var durability: DurabilityGate? { _read { yield pipeline.durability } }

  package var registry: Registry { pipeline.commands.registry }

  /// Whether a shutdown has begun.
  package var isShuttingDown: Bool { shutdown != nil }

  /// When the next step has something to do; `nil` when nothing waits for time.
  package func nextDeadline(after now: Moment) -> Moment? {
    guard !isEnded else { return nil }
    if isReloading { return .zero }
    let commands = pipeline.nextDeadline(after: now)
    let messages = Moment.earlier(routes.nextDeadline, states.nextDeadline)
    return Moment.earlier(Moment.earlier(commands, messages), shutdown?.deadline)
  }

  /// Whether commands would be sent at once if the broker accepted another message.
  package var isHurried: Bool { commands.dispatcher.sendQueue.hasReady }

  // MARK: - Observers

  /// Whether someone receives every event of every command.
  package var isWatched: Bool {
    get { pipeline.commands.dispatcher.log.isWatched }
    set { pipeline.commands.dispatcher.log.isWatched = newValue }
  }

  /// What one key shows: target, actual value, phase.
  package func status(_ key: KeyIndex) -> KeyStatus { commands.dispatcher.status(key) }

  // MARK: - Time

  /// Moves on everything that is due.
  ///
  /// A timer that is due at an instant fires before anything that arrives at that instant, so every
  /// change, report and routed message first moves on the part that receives it.
  package mutating func advance(to now: Moment) {
    pipeline.commands.advance(to: now)
    routes.advance(to: now)
    states.advance(to: now)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Devices
package import Durability
import JSON
package import LastOut
package import Routing
package import Values

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
  ///   - isShared: Whether the store is that of a cluster: values are taken over from other
  ///     gateways, with a new quiet period, since a hand may still be turning.
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

/// Changes from every surface.
extension GatewayCore {
  /// Accepts a change, after everything that is due has left.
  ///
  /// `delay` is the quiet period of a value in place of its policy's.
  ///
  /// - Throws: Why it is rejected; nothing has changed then.
  package mutating func change(
    _ change: ValueChange,
    of key: KeyIndex,
    at now: Moment,
    delay: Duration? = nil,
    _ options: ChangeOptions = ChangeOptions()
  ) throws(ValidationError) {
    pipeline.commands.advance(to: now)
    if pipeline.commands.isGroup(key) {
      return try groups.change(
        change,
        of: key,
        at: now,
        delay: delay,
        options,
        apartFrom: elsewhere,
        in: &pipeline,
        &outbox
      )
    }
    try pipeline.change(change, of: key, delay: delay, options, &outbox, at: now)
  }

  /// Accepts a change that arrived as a message; it waits longer if it is part of a feedback loop:
  /// a bridge that turns what the device reports back into commands.
  ///
  /// `topic` is the command topic, as the log names it.
  ///
  /// - Throws: Why it is rejected; nothing has changed then.
  package mutating func change(
    _ change: ValueChange,
    of key: KeyIndex,
    receivedOn topic: @autoclosure () -> String,
    at now: Moment,
    _ options: ChangeOptions = ChangeOptions()
  ) throws(ValidationError) {
    let wait = try slowing(change, of: key, receivedOn: topic(), at: now)
    try self.change(change, of: key, at: now, delay: wait, wait == nil ? options : options.slowed)
  }

  /// Accepts several values of one device at one instant, all of them or none.
  ///
  /// `topic` is the topic they were received on; it is checked for feedback loops.
  ///
  /// - Throws: Why they are rejected; nothing has changed then.
  package mutating func change(
    _ values: [(key: KeyIndex, value: Value)],
    receivedOn topic: @autoclosure () -> String,
    at now: Moment,
    _ options: ChangeOptions
  ) throws(ValidationError) {
    pipeline.commands.advance(to: now)  // What is due makes room.
    let ordered = try ordered(values, options, at: now)
    var waits: [KeyIndex: Duration] = [:]
    for (key, value) in ordered {
      waits[key] = try slowing(.set(value), of: key, receivedOn: topic(), at: now)
    }
    try accept(ordered, waits, at: now, options)
  }

  /// Accepts several values of one device at one instant, all of them or none.
  ///
  /// - Throws: Why they are rejected; nothing has changed then.
  package mutating func change(
    _ values: [(key: KeyIndex, value: Value)],
    at now: Moment,
    _ options: ChangeOptions
  ) throws(ValidationError) {
    pipeline.commands.advance(to: now)  // What is due makes room.
    let ordered = try ordered(values, options, at: now)
    try accept(ordered, [:], at: now, options)
  }

  /// The values in the order in which they are accepted.
  ///
  /// - Throws: Why they are rejected.
  private mutating func ordered(
    _ values: [(key: KeyIndex, value: Value)],
    _ options: ChangeOptions,
    at now: Moment
  ) throws(ValidationError) -> [(key: KeyIndex, value: Value)] {
    try pipeline.ordered(values, from: options.origin, apartFrom: elsewhere, at: now)
  }

  /// Accepts values that may be accepted; `waits` are the quiet periods of those that are slowed.
  private mutating func accept(
    _ values: [(key: KeyIndex, value: Value)],
    _ waits: [KeyIndex: Duration],
    at now: Moment,
    _ options: ChangeOptions
  ) throws(ValidationError) {
    let longest = options.quiet == .joint ? longestDelay(of: values.map(\.key)) : nil
    for (place, rides) in pipeline.commands.stating(values) {
      let (key, value) = values[place]
      var options = options
      options.rides = rides
      let delay = longest.flatMap {
        registry.definition(of: key).property.policy.delay < $0 ? $0 : nil
      }
      if let wait = waits[key] {
        try change(.set(value), of: key, at: now, delay: max(wait, delay ?? wait), options.slowed)
      } else {
        try change(.set(value), of: key, at: now, delay: delay, options.settling)
      }
    }
    skipQuiet(of: values, except: waits, at: now, options)
  }

  /// The longest quiet period of these keys, without momentary commands.
  private func longestDelay(of keys: [KeyIndex]) -> Duration {
    keys.map { key in
      let property = registry.definition(of: key).property
      return property.isAction ? .zero : property.policy.delay
    }.max() ?? .zero
  }

  /// Accepts values of several devices at one instant, each for itself.
  ///
  /// - Returns: For each value why it was rejected, or `nil`.
  package mutating func changeEach(
    _ values: [(key: KeyIndex, value: Value)],
    at now: Moment,
    _ options: ChangeOptions
  ) -> [ValidationError?] {
    var settling = options.settling
    var results: [ValidationError?] = Array(repeating: nil, count: values.count)
    for (place, rides) in pipeline.commands.stating(values) {
      settling.rides = rides
      do throws(ValidationError) {
        try change(.set(values[place].value), of: values[place].key, at: now, settling)
      } catch {
        results[place] = error
      }
    }
    skipQuiet(of: values, at: now, options)
    return results
  }

  /// Ends the quiet periods of several values if that is asked for, once all are accepted: one
  /// message may carry several of a device.
  ///
  /// Those of a feedback loop wait all the same.
  private mutating func skipQuiet(
    of values: [(key: KeyIndex, value: Value)],
    except slowed: [KeyIndex: Duration] = [:],
    at now: Moment,
    _ options: ChangeOptions
  ) {
    guard options.skipsQuiet else { return }
    for (key, _) in values where slowed[key] == nil {
      flush(key, at: now, source: options.origin?.source ?? "mqtt")
    }
  }

  /// Reports that a change was rejected before it reached a key's queue.
  ///
  /// - Returns: The number of the event.
  @discardableResult
  package mutating func reject(
    _ key: KeyIndex,
    reason: String,
    at now: Moment,
    origin: ChangeOrigin?
  ) -> UInt64 {
    pipeline.commands.dispatcher.log.reject(key, reason: reason, at: now, origin: origin)
  }

  /// A number for something that is rejected without concerning a known key.
  package mutating func nextNumber() -> UInt64 { pipeline.commands.dispatcher.log.nextNumber() }

  /// Ends the quiet period of `key` now; `false` when nothing was pending.
  @discardableResult
  package mutating func flush(_ key: KeyIndex, at now: Moment, source: String) -> Bool {
    perform(.flush, on: key, at: now, source: source)
  }

  /// Drops what waits for `key`; `false` when nothing did.
  @discardableResult
  package mutating func cancel(_ key: KeyIndex, at now: Moment, source: String) -> Bool {
    perform(.cancel, on: key, at: now, source: source)
  }

  /// Ends the wait of `key`, or of each member of a group; `false` when nothing waited.
  private mutating func perform(
    _ operation: RecordedChange.Operation,
    on key: KeyIndex,
    at now: Moment,
    source: String
  ) -> Bool {
    pipeline.commands.advance(to: now)
    guard pipeline.commands.isGroup(key) else {
      return pipeline.perform(operation, on: key, source: source, &outbox, at: now)
    }
    var isAny = false
    for member in registry.groups.members(of: key)
    where pipeline.perform(operation, on: member, source: source, &outbox, at: now) {
      isAny = true
    }
    return isAny
  }

  // MARK: - Feedback loops

  /// How long a change that arrived as a message waits if it is part of a loop.
  ///
  /// - Throws: When the property has no such change.
  private mutating func slowing(
    _ change: ValueChange,
    of key: KeyIndex,
    receivedOn topic: @autoclosure () -> String,
    at now: Moment
  ) throws(ValidationError) -> Duration? {
    let slowing = try loops.check(change, of: key, &pipeline.commands, receivedOn: topic(), at: now)
    outbox.log(slowing?.entry)
    return slowing?.wait
  }
}

/// Continuing with other devices and policies, one bounded step of the reload in each step.
///
/// Changes, reports, disconnects and a shutdown may come in between. They meet the old definitions
/// until ``Effect/definitionsReplaced``, and the new ones from then on.
extension GatewayCore {
  package var isReloading: Bool { pipeline.commands.isReloading }

  /// Continues with another registry, which continues this one, and other lanes.
  ///
  /// What is pending stays. ``Effect/reloaded`` follows once no key has a value left that was not
  /// checked against its new definition.
  package mutating func beginReload(
    _ registry: Registry,
    lanes: [String: LaneLimits]
  ) {
    pipeline.commands.beginReload(registry, lanes: lanes)
  }

  /// Asks for the states of these keys, after their topics were subscribed to.
  package mutating func requestStates(of keys: some Sequence<KeyIndex>) {
    pipeline.commands.requestStates(of: keys)
  }

  mutating func continueReload(at now: Moment) -> Effect? {
    guard isReloading else { return nil }
    defer { collectOutcomes(at: now) }
    switch pipeline.commands.continueReload(keys: settings.keysPerReloadStep, at: now) {
    case .prepared(let keys, let devices): makeRoom(forKeys: keys, devices: devices)
    case .replaced:
      let registry = registry
      pipeline.durability?.replaceDevices(registry, awaiting: settings.awaited)
      return .definitionsReplaced
    case .migrated: break
    case .finished:
      pipeline.commands.refreshAllGroups(at: now)
      return .reloaded
    }
    return nil
  }

  private mutating func makeRoom(forKeys keys: Int, devices: Int) {
    states.extend(properties: keys, devices: devices)
    loops.extend(keys: keys)
    pipeline.durability?.extend(toKeys: keys)
  }
}

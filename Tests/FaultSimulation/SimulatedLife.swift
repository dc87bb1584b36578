// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
import GatewayCore
import LastOut
package import LastOutTesting

/// A run of one gateway with unreliable users, brokers, devices and disk.
///
/// It drives the ``GatewayCore`` that ships on virtual time, through the calls that the host makes,
/// performs its effects on a simulated world, and after every step checks everything against a slow
/// model and a ledger. The same seed gives the same run.
package final class SimulatedLife {
  /// The first violated rule, which ends the run.
  package internal(set) var breach: String?
  /// The number of steps so far.
  package internal(set) var steps = 0
  /// The last events, the oldest first; empty unless requested.
  package internal(set) var trace: [String] = []
  /// The counts of events, so that a run without events does not count as a good one.
  package internal(set) var seen = Coverage()

  let seed: UInt64
  var random: SeededGenerator
  var probabilities: Probabilities
  var registry: Registry
  let settings: GatewayCoreSettings
  /// In some lives a rule outside turns what a device does into changes.
  var rule: OutsideRule?
  let isTraced: Bool
  /// Receives every line of the trace at once, so that it is known even if the next step traps.
  let listener: ((String) -> Void)?
  var core: GatewayCore
  var model: Model
  var ledger: Ledger
  var groups = GroupLedger()
  var routes: RouteLedger
  var lamps = RouteGroupLedger()
  /// Whether messages for the lamps and groups of a bridge take a route: in half of all lives.
  var hasLamps: Bool { seed % 4 > 1 }
  /// Draws what concerns them.
  var groupRandom: SeededGenerator
  /// How many messages of routes had expired when that was looked at last.
  var expiredRoutes: UInt64 = 0
  var retained = RetainedTopics()
  var world: World
  var agenda = Agenda()
  var now = Moment(nanoseconds: 1_000_000_000)
  var disk: SimulatedDisk
  /// Whether the gateway has a journal.
  let isJournalled: Bool
  var invariants: DurabilityInvariants
  /// The values that the last start found, by key.
  var stored: [KeyIndex: Survivor] = [:]
  /// The order of the accepted value of each identifier.
  var orders: [String: UInt64] = [:]
  /// Events that were decided and not compared with the model yet.
  var decided: [CommandEvent] = []
  /// How many of the state machine's undelivered events are in ``decided`` already.
  var decidedCount = 0
  /// Counts accepted values, restarts included.
  var acceptedCount: UInt64 = 0
  /// How long the machine has slept; the monotonic clock does not count it.
  var slept = Duration.zero
  /// Whether the wall clock was wrong for a while.
  var isTimeDoubtful = false
  /// Publishes without an answer.
  var outstanding: [(message: Agenda.Message, keys: [KeyIndex])] = []
  /// The last tokens of publishes, the oldest first.
  var tokens: [UInt64] = []
  /// Numbers of publishes that were answered.
  var answered: [UInt64] = []
  var publishCount = 0
  var lastCaller: UInt64 = 0
  var isFaultFree = false

  /// - Parameters:
  ///   - seed: The seed of all decisions.
  ///   - isJournalled: Whether accepted values survive a crash.
  ///   - isTraced: Whether ``trace`` is kept, which costs time.
  ///   - listener: Receives every line as it is added; the trace is kept then.
  package init(
    seed: UInt64,
    isJournalled: Bool,
    isTraced: Bool = false,
    listener: ((String) -> Void)? = nil
  ) {
    self.seed = seed
    self.isTraced = isTraced || listener != nil
    self.listener = listener
    self.isJournalled = isJournalled
    random = SeededGenerator(life: seed)
    groupRandom = SeededGenerator(life: ~seed)
    probabilities = Probabilities(&random)
    registry = Registry(House.devices(seed))
    rule = OutsideRule(registry, seed: seed)
    Self.calm(&probabilities, &rule)
    var settings = GatewayCoreSettings()
    settings.commands.lanes = House.lanes
    settings.commands.pendingLimit = random.chance(30) ? 4 : 100
    settings.routes = House.routes
    settings.brokers = House.brokers
    settings.keysPerReloadStep = random.within(1...5)
    self.settings = settings
    let isWatched = random.chance(80)
    disk = SimulatedDisk(seed: seed)
    core = Self.makeCore(registry, settings, session: 0, at: now)
    core.isWatched = isWatched
    if isJournalled { core.openStore(JournalPlan(contents: JournalContents()), path: "journal") }
    core.keepTranscript()
    model = Model(registry, settings.commands, isWatched: isWatched, isJournalled: isJournalled)
    invariants = DurabilityInvariants(registry)
    ledger = Ledger(keys: registry.properties.count, isComplete: isWatched || isJournalled)
    routes = RouteLedger(ttl: settings.routeTTL)
    world = World(registry)
    agenda.plan(.reconnection(generation: 0), at: now)
    agenda.plan(.farReconnection, at: now)
    announceRouteGroups()
  }

  static func makeCore(
    _ registry: Registry,
    _ settings: GatewayCoreSettings,
    session: Int,
    at now: Moment
  ) -> GatewayCore {
    GatewayCore(
      registry: registry,
      settings: settings,
      identifiers: CommandIdentifiers(
        wallMilliseconds: 1_800_000_000_000,
        now: now,
        session: UInt16(truncatingIfNeeded: session)
      )
    )
  }

  /// Runs `count` steps, then without faults until nothing waits; it can be called again.
  package func live(steps count: Int) {
    isFaultFree = false
    for _ in 0..<count where breach == nil {
      step()
      finishStep()
    }
    guard breach == nil else { return }
    endFaults()
  }

  /// Performs one step.
  private func step() {
    if let due = agenda.next, due.at <= now, random.chance(85) {
      performNextEvent()
    } else if random.chance(probabilities.time) {
      passTime()
    } else {
      act()
    }
  }

  func finishStep() {
    steps += 1
    guard breach == nil else { return }
    stepCore(hasRoom: isFaultFree || !random.chance(probabilities.missedTurn))
    check()
  }

  // MARK: - Time

  private func passTime() {
    if random.chance(probabilities.pause) {
      // The machine slept, or the process was stopped: everything is late.
      seen[.pauses] += 1
      if isJournalled, random.chance(30) { return sleep() }
      now = now.advanced(by: .milliseconds(random.within(1000...90_000)))
      if isTraced { log("the clock jumps") }
    } else if random.chance(75) {
      moveToNext()
      if random.chance(10) { now = now.advanced(by: .microseconds(random.within(1...3000))) }
    } else {
      now = now.advanced(by: .milliseconds(random.within(0...400)))
    }
    if random.chance(90) { wake(takesResult: random.chance(50)) }
  }

  /// Advances to the next planned event or deadline of the gateway or its disk.
  func moveToNext() {
    var next = agenda.next?.at
    if let deadline = core.nextDeadline(after: now) { next = min(next ?? deadline, deadline) }
    if let end = disk.endsAt { next = min(next ?? end, end) }
    if let next, next > now { now = next }
  }

  /// Wakes the loop.
  ///
  /// `takesResult`: whether it learns now what became of the disk's work, or after the changes that
  /// arrived with it.
  func wake(takesResult: Bool = true) {
    guard breach == nil else { return }
    core.advance(to: now)
    collect()
    model.advance(to: now, emitted: decided)
    seen[.restsElsewhere] += model.restsElsewhere
    model.restsElsewhere = 0
    compareEvents("after waking")
    guard takesResult, isJournalled, breach == nil, let result = disk.advance(to: now) else {
      return
    }
    if case .reopened = result {
      if isTraced { log("the journal's file could be opened") }
      invariants.opened()
    }
    core.storeFinished(result, at: now)
    drain()
  }

  func log(_ text: String) {
    let milliseconds = Double(now.nanoseconds / 1000) / 1000
    trace.append("\(milliseconds) ms: \(text)")
    listener?(trace[trace.count - 1])
    if trace.count > 400 { trace.removeFirst(200) }
  }

  func name(_ key: KeyIndex) -> String { registry[key].key }
}

extension SeededGenerator {
  /// The numbers of one life; neighbouring seeds have nothing in common.
  package init(life seed: UInt64) {
    self.init(seed: seed &* 0x9E37_79B9_7F4A_7C15 &+ 0x1234_5678_9ABC_DEF1)
  }
}

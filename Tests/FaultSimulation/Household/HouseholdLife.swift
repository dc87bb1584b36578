// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
import GatewayCore
import LastOut
import LastOutTesting
import Values

/// A run of one gateway among the devices of a household, in an unkind world.
///
/// Acknowledgements are late, reordered or lost; devices repeat requests and travel, or refuse,
/// clamp and forget them; people change related properties within moments. It drives the
/// ``GatewayCore`` that ships. A life has chapters: in each, people and faults do a few things,
/// then all faults end, and once everything is quiet every device must be as a person expects.
package final class HouseholdLife {
  /// A mistake in the simulated world, which the checks must find.
  package enum Mistake: Sendable {
    /// Travelling devices confirm and never arrive.
    case neverArrives
    /// Late acknowledgements are never delivered.
    case acknowledgementLost
    /// The broker gets two messages in the wrong order.
    case messagesSwapped
    /// A hand at a device is not reported.
    case handUnreported
  }

  /// The first violated rule, which ends the run.
  package internal(set) var breach: String?
  package internal(set) var steps = 0
  /// The last events, the oldest first; empty unless requested.
  package internal(set) var trace: [String] = []
  package internal(set) var seen = HouseholdCoverage()

  let seed: UInt64
  let clauses: Clauses
  let mistake: Mistake?
  let isTraced: Bool
  let listener: ((String) -> Void)?
  var random: SeededGenerator
  let traits: HouseholdTraits
  let registry: Registry
  let facts: [HouseholdFacts]
  let settings: GatewayCoreSettings
  var core: GatewayCore
  var now = Moment(nanoseconds: 1_000_000_000)
  var timeline = Timeline<HouseholdEvent>()
  var disk: SimulatedDisk
  var expectation: Expectation
  var order: IntentOrder
  var broker = HouseholdBroker()
  var devices: [HouseholdDevice]
  var commands = HouseholdCommands()
  var losses = PowerLosses()
  /// When each device got its power back last.
  var poweredAt: [Int: Moment] = [:]
  /// The number of intents before the chapter.
  var earlierIntents: UInt64 = 0
  /// Whether the gateway was killed since all was quiet: it knows only what is reported.
  var hasCrashed = false
  /// Devices of groups that were changed together in the chapter.
  var groupChanges: Set<Int> = []
  /// A message that a mistake holds back.
  var swapped: [IntentOrder.Part]?
  /// When each device is handed its next message, and its next report leaves, at the earliest.
  var nextDelivery: [Moment]
  var nextReport: [Moment]
  /// What the gateway heard of each key last, and when its command was confirmed.
  var heard: [Value?]
  var confirmedAt: [Int: Moment] = [:]
  /// The keys that something urgent has ended at the device since they were heard.
  var endedUnheard: Set<Int> = []
  /// The keys of which it heard last what they were before a newer message.
  var heardLate: Set<Int> = []
  /// The keys that it heard while what they imply was off.
  var heardDark: Set<Int> = []

  package init(
    seed: UInt64,
    clauses: Clauses = .all,
    mistake: Mistake? = nil,
    isTraced: Bool = false,
    listener: ((String) -> Void)? = nil
  ) {
    self.seed = seed
    self.clauses = clauses
    self.mistake = mistake
    self.isTraced = isTraced || listener != nil
    self.listener = listener
    random = SeededGenerator(life: seed ^ 0x5EED)
    traits = HouseholdTraits(&random, seed: seed)
    registry = Registry(Household.devices(traits))
    facts = HouseholdFacts.all(in: registry, implies: Household.implies)
    var settings = GatewayCoreSettings()
    settings.commands.lanes = Household.lanes
    settings.commands.fewestCarried = 2
    settings.keysPerReloadStep = 1 + Int(seed % 5)
    self.settings = settings
    disk = SimulatedDisk(seed: seed, commit: traits.commit)
    core = SimulatedLife.makeCore(registry, settings, session: 0, at: now)
    expectation = Expectation(facts)
    order = IntentOrder(facts)
    devices = registry.devices.map { HouseholdDevice(Household.form(of: $0.id)) }
    nextDelivery = devices.map { _ in .zero }
    nextReport = devices.map { _ in .zero }
    heard = facts.map { _ in nil }
    start(JournalContents())
    broker.retain(registry, devices, at: now)
    temper()
    timeline.plan(.reconnection(generation: 0), at: now)
  }

  /// Gives each device its temper.
  private func temper() {
    for device in devices.indices {
      var temper = HouseholdDevice.Temper()
      temper.repeatsRequest = random.chance(traits.repeating)
      if random.chance(traits.travelling) {
        switch devices[device].form {
        case .lamp, .statefulLamp: temper.travel = random.within(300...4000)
        case .shade: temper.travel = random.within(5000...45_000)
        case .valve, .dimmer: temper.travel = random.within(500...5000)
        case .relay: break
        }
        temper.interval = devices[device].form == .shade ? random.within(500...3000) : 300
        // Some are so slow that they are not at rest when the time for that is over.
        if devices[device].form == .shade, random.chance(10) {
          temper.travel = 900_000
          temper.interval = 5000
        }
      }
      temper.fadesOut = random.chance(50)
      temper.isForgetful = random.chance(50)
      if random.chance(traits.clamps) { temper.reach = 20...80 }
      devices[device].temper = temper
    }
  }

  /// Starts a process with what the journal has.
  func start(_ contents: JournalContents) {
    core.isWatched = true
    if traits.isJournalled { core.openStore(JournalPlan(contents: contents), path: "journal") }
    core.keepTranscript()
    commands.decidedCount = 0
  }

  /// Runs chapters until there were `count` steps; it can be called again.
  package func live(steps count: Int) {
    let end = steps + count
    rest()
    while breach == nil, steps < end {
      planChapter()
      rest()
      guard breach == nil else { return }
      checkRest()
    }
  }

  /// Runs until nothing is planned and the gateway waits for nothing.
  private func rest() {
    var rounds = 0
    while breach == nil {
      rounds += 1
      guard rounds < 20_000 else { return fail("it never comes to rest") }
      var next = timeline.next?.at
      if let deadline = core.nextDeadline(after: now) { next = min(next ?? deadline, deadline) }
      if let end = disk.endsAt { next = min(next ?? end, end) }
      guard let next else { return }
      if next > now { now = next }
      wake()
      if let due = timeline.next, due.at <= now, let entry = timeline.removeNext() {
        perform(entry.item)
      }
      step()
      steps += 1
    }
  }

  // MARK: - Violations

  func fail(_ words: String) {
    guard breach == nil else { return }
    breach = words
    if isTraced { log("BROKEN: \(words)") }
  }

  /// Records a violated clause, which ends the life if the gateway is said to hold it.
  func violated(_ clause: Clause, _ words: String) {
    if clauses.contains(clause) { return fail("\(clause): \(words)") }
    if isTraced { log("VIOLATED \(clause): \(words)") }
    seen.violated(clause, seed: seed)
  }

  func log(_ text: String) {
    let milliseconds = Double(now.nanoseconds / 1000) / 1000
    trace.append("\(milliseconds) ms: \(text)")
    listener?(trace[trace.count - 1])
    if trace.count > 400 { trace.removeFirst(200) }
  }

  func name(_ key: Int) -> String { registry.properties[key].key }

  func after(_ range: ClosedRange<Int>) -> Moment {
    now.advanced(by: .milliseconds(random.within(range)))
  }
}

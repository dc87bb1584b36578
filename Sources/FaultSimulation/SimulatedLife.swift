// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut

/// One gateway's life among people, a broker and devices, none of them reliable.
///
/// It drives the real ``CommandStateMachine`` on virtual time as the gateway does, and asks a slow
/// model and a ledger after every step whether all was right. The same seed lives the same life.
package struct SimulatedLife: ~Copyable {
  /// What the first broken rule is, in words; the life ends with it.
  package internal(set) var breach: String?
  /// Steps lived.
  package internal(set) var steps = 0
  /// The last happenings, the oldest first; empty unless asked for.
  package internal(set) var trace: [String] = []
  /// What was seen, so that a quiet simulation does not pass for a good one.
  package internal(set) var seen = Sightings()

  let seed: UInt64
  var random: SeededGenerator
  var chances: Chances
  let registry: Registry
  let settings: CommandStateMachine.Settings
  let isTraced: Bool
  /// Gets every happening at once, so that it is known even if the next one traps.
  let listener: ((String) -> Void)?
  var machine: CommandStateMachine
  var model: Model
  var ledger: Ledger
  var world: World
  var agenda = Agenda()
  var now = Moment(nanoseconds: 1_000_000_000)
  var memory: any RestartMemory
  /// The memory makes promises.
  let isJournalled: Bool
  var promises: Promises
  /// What the memory has said and was not heard yet.
  var news: [MemoryNews] = []
  var isListening = false
  /// Counts accepted values, restarts included.
  var acceptedCount: UInt64 = 0
  /// How long the machine has slept, unnoticed by the monotonic clock.
  var slept = Duration.zero
  /// The time of day was wrong for a while.
  var isTimeDoubtful = false
  /// Publishes without an answer.
  var outstanding: [(letter: Agenda.Letter, keys: [KeyIndex])] = []
  /// Tokens that were answered.
  var landed: [UInt64] = []
  var publishCount = 0
  var lastCaller: UInt64 = 0
  var closingUntil: Moment?
  /// The way out waits for the journal until then.
  var keepingUntil: Moment?
  var isCalm = false

  /// - Parameters:
  ///   - seed: Decides everything.
  ///   - memory: What outlives a restart.
  ///   - isTraced: Whether ``trace`` is kept, which costs time.
  ///   - listener: Gets every happening as it comes; the trace is kept then.
  package init(
    seed: UInt64,
    memory: any RestartMemory = Forgetful(),
    isTraced: Bool = false,
    listener: ((String) -> Void)? = nil
  ) {
    self.seed = seed
    self.isTraced = isTraced || listener != nil
    self.listener = listener
    self.memory = memory
    isJournalled = memory.isJournal
    random = SeededGenerator(seed: seed)
    chances = Chances(&random)
    registry = Registry(House.devices)
    var settings = CommandStateMachine.Settings()
    settings.lanes = House.lanes
    settings.pendingLimit = random.chance(30) ? 4 : 100
    self.settings = settings
    let isWatched = random.chance(80)
    machine = CommandStateMachine(registry: registry, settings: settings)
    machine.isWatched = isWatched
    machine.isJournalled = isJournalled
    model = Model(registry, settings, isWatched: isWatched, isJournalled: isJournalled)
    promises = Promises(keys: registry.properties.count)
    ledger = Ledger(keys: registry.properties.count)
    world = World(registry)
    agenda.plan(.reconnection(generation: 0), at: now)
  }

  /// Lives `count` steps, then in calm until nothing waits; it may go on living after that.
  package mutating func live(steps count: Int) {
    isCalm = false
    for _ in 0..<count where breach == nil {
      step()
      finishStep()
    }
    guard breach == nil else { return }
    calmDown()
  }

  /// One thing happens.
  private mutating func step() {
    if let due = agenda.next, due.at <= now, random.chance(85) {
      happen()
    } else if random.chance(chances.time) {
      passTime()
    } else {
      act()
    }
  }

  mutating func finishStep() {
    steps += 1
    guard breach == nil else { return }
    if isCalm || !random.chance(chances.missedTurn) { publish() }
    endClosing()
    check()
  }

  // MARK: - Time

  private mutating func passTime() {
    if random.chance(chances.pause) {
      // The machine slept, or the process was stopped: everything is late.
      seen.pauses += 1
      if isJournalled, random.chance(30) { return sleep() }
      now = now.advanced(by: .milliseconds(random.within(1000...90_000)))
      if isTraced { note("the clock jumps") }
    } else if random.chance(75) {
      moveToNext()
      if random.chance(10) { now = now.advanced(by: .microseconds(random.within(1...3000))) }
    } else {
      now = now.advanced(by: .milliseconds(random.within(0...400)))
    }
    if random.chance(90) { wake() }
  }

  /// To the next thing that is planned, or that the machine waits for.
  mutating func moveToNext() {
    var next = agenda.next?.at
    if let deadline = machine.nextDeadline(after: now) { next = min(next ?? deadline, deadline) }
    if let due = memory.nextDeadline { next = min(next ?? due, due) }
    if let next, next > now { now = next }
  }

  /// The loop wakes up.
  mutating func wake() {
    guard breach == nil else { return }
    machine.advance(to: now)
    model.advance(to: now, told: machine.events)
    agree("after waking")
    guard isJournalled, breach == nil else { return }
    memory.advance(to: now)
    listen()
  }

  mutating func note(_ text: String) {
    let milliseconds = Double(now.nanoseconds / 1000) / 1000
    trace.append("\(milliseconds) ms: \(text)")
    listener?(trace[trace.count - 1])
    if trace.count > 400 { trace.removeFirst(200) }
  }

  func name(_ key: KeyIndex) -> String { registry[key].key }
}

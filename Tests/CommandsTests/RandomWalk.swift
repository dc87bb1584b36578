// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import LastOutTesting
import Testing
import Values

@testable import Commands

/// A random life of a machine among people, a broker and devices, none of them reliable.
///
/// Invariants are checked after every step; what is broken is told in words.
struct RandomWalk: ~Copyable {
  private(set) var broken: String?
  private var random: SeededGenerator
  private var machine: CommandStateMachine
  private var now = Moment(nanoseconds: 1_000_000_000)
  private var inFlight: [CommandPublish] = []
  private var isUp = false
  private var history = History()
  private var nextOrigin: UInt64 = 1
  private var isCalm = false

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
    var settings = CommandSettings()
    settings.lanes["bus"] = LaneLimits(rate: 5, burst: 2)
    settings.pendingLimit = 7
    machine = CommandStateMachine(registry: Registry(Self.devices), settings: settings)
    machine.log.isWatched = true
  }

  /// Some hundred milliseconds of chaos a step, then calm until nothing waits.
  mutating func run(steps: Int) {
    for _ in 0..<steps where broken == nil {
      step()
      check()
    }
    guard broken == nil else { return }
    calmDown()
  }

  // MARK: - The world

  private mutating func step() {
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<7: change()
    case 7: machine.cancel(anyKey(), at: now)
    case 8: machine.flush(anyKey(), at: now)
    case 9, 10: report(anyKey(), anyNumber())
    case 11: connect(!isUp)
    case 12:
      machine.availabilityChanged(
        of: Int.random(in: 0..<3, using: &random),
        source: 0,
        isOnline: Int.random(in: 0..<3, using: &random) > 0,
        at: now
      )
    case 13..<16: answer()
    default: pass(.milliseconds(Int.random(in: 0...700, using: &random)))
    }
    if Bool.random(using: &random) { publish() }
  }

  private mutating func change() {
    let key = anyKey()
    let property = machine.registry[key].property
    let change: ValueChange
    switch property.kind {
    case .choice(let words), .action(let words):
      change = .set(.text(words.randomElement(using: &random) ?? ""))
    case .number, .integer, .boolean, .text, .color:
      change =
        Int.random(in: 0..<4, using: &random) == 0
        ? .step(Double.random(in: -9...9, using: &random).rounded()) : .set(.number(anyNumber()))
    }
    let number = nextOrigin
    nextOrigin += 1
    do throws(ValidationError) {
      try machine.change(
        change,
        of: key,
        at: now,
        ChangeOptions(
          origin: ChangeOrigin(replyTo: number),
          ttl: Bool.random(using: &random) ? .milliseconds(1500) : nil,
          skipsQuiet: Int.random(in: 0..<3, using: &random) == 0
        )
      )
      history.owed.insert(number)
    } catch {
      if error == .shuttingDown { broken = "a running machine said that it shuts down" }
    }
  }

  private mutating func connect(_ up: Bool) {
    isUp = up
    let isToldFirst = Bool.random(using: &random)
    if up || isToldFirst { machine.connectionChanged(isUp: up, at: now) }
    if !up {
      for publish in inFlight.shuffled(using: &random) {
        machine.finish(publish.token, .lost, at: now)
      }
      inFlight = []
      if !isToldFirst { machine.connectionChanged(isUp: false, at: now) }
    }
  }

  private mutating func publish() {
    while inFlight.count < 3, let publish = machine.nextPublish(at: now) {
      if !isUp { broken = "published without a broker" }
      for key in publish.keys where inFlight.contains(where: { $0.keys.contains(key) }) {
        broken = "\(machine.registry[key].key) was sent twice at a time"
      }
      inFlight.append(publish)
    }
  }

  private mutating func answer() {
    guard let place = inFlight.indices.randomElement(using: &random) else { return }
    let publish = inFlight.remove(at: place)
    let luck = isCalm ? 0 : Int.random(in: 0..<8, using: &random)
    machine.finish(publish.token, luck == 7 ? .refused("no") : .acknowledged, at: now)
    guard luck < 4 else { return }
    for key in publish.keys {
      guard let flight = machine.deliveries[key].inFlight else { continue }
      machine.reported(
        key,
        machine.registry[key].property.wireValue(of: flight.command.value),
        at: now
      )
    }
  }

  private mutating func report(_ key: KeyIndex, _ number: Double) {
    let property = machine.registry[key].property
    guard !property.states.isEmpty else { return }
    if case .choice(let words) = property.kind {
      machine.reported(key, .string(words[Int(number) % words.count]), at: now)
    } else {
      machine.reported(key, .number(number), at: now)
    }
  }

  private mutating func pass(_ duration: Duration) {
    let end = now.advanced(by: duration)
    while let due = machine.nextDeadline(after: now), due <= end {
      now = max(now, due)
      machine.advance(to: now)
      publish()
      hear()
      if inFlight.count < 3, let next = machine.nextDeadline(after: now), next <= now {
        broken = "a deadline that has passed is still there"
        return
      }
      if inFlight.count >= 3 { break }
    }
    now = end
    machine.advance(to: now)
  }

  /// Everybody is there and answers; nobody asks for anything more.
  private mutating func calmDown() {
    isCalm = true
    connect(true)
    for device in 0..<3 {
      machine.availabilityChanged(of: device, source: 0, isOnline: true, at: now)
    }
    for _ in 0..<400 where broken == nil {
      publish()
      while !inFlight.isEmpty { answer() }
      check()
      publish()
      guard inFlight.isEmpty, let due = machine.nextDeadline(after: now) else { continue }
      now = max(now, due)
      machine.advance(to: now)
    }
    guard broken == nil else { return }
    if machine.hasUnsent || !machine.isDrained || machine.pendingCount > 0 {
      broken = "something waits for ever: \(machine.unsentKeys().map(\.rawValue))"
    }
    if let due = machine.nextDeadline(after: now) { broken = "idle, but a wake-up at \(due)" }
    if let left = history.owed.first { broken = "change \(left) never got its final event" }
    if let open = history.open.keys.first { broken = "command \(open) has no end" }
  }

  private mutating func anyKey() -> KeyIndex {
    KeyIndex(Int32.random(in: 0..<Int32(machine.registry.properties.count), using: &random))
  }

  private mutating func anyNumber() -> Double {
    Double(Int.random(in: 0...100, using: &random))
  }

  // MARK: - The invariants

  private mutating func check() {
    hear()
    if broken == nil { broken = machine.inconsistency }
  }

  private mutating func hear() {
    for event in machine.log.events where broken == nil {
      broken = history.note(event, ending: machine.relations[event.key].ends)
    }
    machine.log.events.removeAll(keepingCapacity: true)
    machine.log.statuses.changedKeys.removeAll(keepingCapacity: true)
  }

  private static var devices: [Device] {
    func object(_ member: String) -> CommandEndpoint {
      CommandEndpoint(
        topic: "light/set",
        payload: PayloadTemplate(.object([.init(member, "$value")]))
      )
    }
    var light = Device.of(
      "light",
      lane: "bus",
      [
        .seen("brightness") { $0.command = object("brightness") },
        .seen("warmth") {
          $0.command = object("warmth")
          $0.excludes = ["hue"]
        },
        .seen("hue", retries: 1) { $0.command = object("hue") },
      ]
    )
    light.merge = true
    let ask = StateRequest(topic: "valve/get", payload: [])
    return [
      .of(
        "valve",
        lane: "bus",
        [
          .seen("level", retries: 2) {
            $0.state = StateSource(topic: "valve", value: .whole, get: ask)
          },
          .word("mode", kind: .choice(["off", "heat", "auto"])) {
            $0.urgent = [.text("off")]
            $0.ends = ["level"]
            $0.state = StateSource(topic: "mode", value: .whole)
            $0.confirm = Confirmation(within: .seconds(2), retries: 1)
          },
        ]
      ), light,
      .of(
        "blind",
        [
          .level("position") {
            $0.policy = .live
            $0.ttl = .seconds(3)
          },
          .word("button", kind: .action(["STOP", "OPEN"]), delay: 0) {
            $0.urgent = [.text("STOP")]
            $0.ends = ["position"]
          },
        ]
      ),
    ]
  }
}

/// What was told so far, and what must not follow it.
private struct History {
  /// Callers that still wait for a final event.
  var owed: Set<UInt64> = []
  /// Commands that were accepted and have not ended.
  var open: [UInt64: Phase] = [:]
  private var lastSending: [KeyIndex: UInt64] = [:]

  /// Takes an event, and tells what is broken.
  ///
  /// An urgent value of its key ends those of the keys `ended`.
  mutating func note(_ event: CommandEvent, ending ended: [KeyIndex]) -> String? {
    let name = "\(event.phase) of command \(event.number)"
    if event.isFinal, let caller = event.origin?.replyTo, owed.remove(caller) == nil {
      return "\(name): caller \(caller) got a second final event"
    }
    switch event.phase {
    case .accepted:
      guard open.updateValue(.accepted, forKey: event.number) == nil else {
        return "\(name): accepted twice"
      }
    case .rejected: break
    case .sending:
      guard open[event.number] != nil else { return "\(name): it had ended" }
      guard event.number >= lastSending[event.key] ?? 0 else { return "\(name): older than before" }
      let isUrgent = event.value == .text("off") || event.value == .text("STOP")
      if isUrgent, ended.contains(where: { lastSending[$0] ?? 0 > event.number }) {
        return "\(name): it follows a newer value that it would have ended"
      }
      lastSending[event.key] = event.number
      open[event.number] = .sending
    case .sent:
      guard open[event.number] == .sending else { return "\(name): it was not in flight" }
      open[event.number] = event.isFinal ? nil : .sent
    case .unchanged, .cancelled, .superseded, .confirmed, .failed, .expired:
      let isHeldStep = event.value == nil
      guard open.removeValue(forKey: event.number) != nil || isHeldStep else {
        return "\(name): it had ended"
      }
    }
    return nil
  }
}

extension CommandStateMachine {
  /// What does not fit together inside; `nil` when all does.
  fileprivate var inconsistency: String? {
    var (ready, inLane, unacknowledged, expiring, unconfirmed, travelling) = (0, 0, 0, 0, 0, 0)
    let sendQueue = sendQueue
    for key in facts.keys {
      let delivery = deliveries[key]
      if let command = sendQueue[key] {
        ready += 1
        if !sendQueue.isOnline(key) { expiring += 1 }
        if sendQueue.isDeviceOnline(facts[key].device), !delivery.isSending,
          !mustWait(key)
        {
          inLane += 1
        }
        if command.isRepeated, queue.isPending(key) {
          return "\(key) would be repeated although something newer waits"
        }
      }
      if delivery.isSending { unacknowledged += 1 }
      if delivery.awaitsConfirmation { unconfirmed += 1 }
      if delivery.restsAt != nil { travelling += 1 }
      if delivery.isSending != sendQueue.awaitsAcknowledgement(key) {
        return "\(key) is blocked without a command that is being sent, or the other way round"
      }
    }
    return Self.difference("ready", sendQueue.count, ready)
      ?? Self.difference("unacknowledged", sendQueue.unacknowledgedCount, unacknowledged)
      ?? Self.difference("in lanes", sendQueue.lanes.count, inLane)
      ?? Self.difference("may expire", sendQueue.expiries.count, expiring)
      ?? Self.difference(
        "unconfirmed or travelling",
        deliveries.deadlines.count,
        unconfirmed + travelling
      )
      ?? Self.difference("waiting for a state", waitingSteps.deadlines.count, waitingSteps.keyCount)
  }

  /// Whether an urgent value that ends those of `key` has not left for good.
  private func mustWait(_ key: KeyIndex) -> Bool {
    facts.keys.contains { other in
      guard relations[other].ends.contains(key) else { return false }
      let delivery = deliveries[other]
      let isLeaving = delivery.isSending && delivery.inFlight?.command.isUrgent == true
      return sendQueue[other]?.isUrgent == true
        || isLeaving && !facts[other].isAction
    }
  }

  private static func difference(_ what: String, _ count: Int, _ found: Int) -> String? {
    count == found ? nil : "the count of what is \(what) is \(count), found \(found)"
  }
}

@Suite struct RandomWalkTests {
  /// A failing seed names itself and replays exactly.
  @Test(arguments: 0..<8)
  func `no schedule of changes, losses, reports and absences breaks an invariant`(part: UInt64) {
    for seed in part * 400..<(part + 1) * 400 {
      var walk = RandomWalk(seed: seed)
      walk.run(steps: 80)
      #expect(walk.broken == nil, "seed \(seed)")
    }
  }
}

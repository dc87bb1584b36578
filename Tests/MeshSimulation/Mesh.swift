// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOutTesting

/// A radio mesh between an adapter and lamps, on virtual time.
///
/// All frames share one channel, which carries one frame at a time. A command crosses the mesh hop
/// by hop; the lamp acknowledges it and, after it has acted, reports its state the same way. It
/// knows nothing of lanes: it is the judge of what a lane does.
///
/// The adapter works on so many commands of one lamp at a time as ``MeshParameters/perLamp`` says,
/// and a lamp on so many of its reports, so with one of each no value overtakes another.
package struct Mesh {
  /// What happened in the mesh.
  package enum Event: Sendable {
    /// The adapter had no room for the command.
    case dropped(lamp: Int)
    /// The lamp has the value.
    case arrived(lamp: Int, value: Int)
    /// The report has reached the adapter.
    case reported(lamp: Int, value: Int)
  }

  private enum Leg { case command, acknowledgement, report, broadcast }

  private struct Message {
    let lamp: Int
    var value: Int
    let leg: Leg
    var hop = 0
    var frameTries = 0
    var messageTries = 0
  }

  /// The commands for one lamp, or its reports, which take turns.
  private struct Turns: Hashable {
    let lamp: Int
    let leg: Leg
  }

  private struct Line {
    var sending = 0
    var waiting: [Int] = []
  }

  private enum Action {
    case frameEnds(Int)
    case startsAgain(Int)
    case lampHears(lamp: Int, value: Int)
    case lampReports(lamp: Int)
    case lampWakes(lamp: Int)
  }

  /// How long a lamp that sleeps listens after each of its reports, in milliseconds.
  private static let listening = 3000.0

  private let mesh: MeshParameters
  private var generator: SeededGenerator
  private var messages: [Message] = []
  /// The messages whose next frame waits for the channel.
  private var contenders: [Int] = []
  private var isBusy = false
  private var held = 0
  /// The commands that the adapter works on.
  private var working = 0
  /// Commands and reports that wait for an earlier one of the same lamp.
  private var lines: [Turns: Line] = [:]
  /// What each lamp has.
  private var values: [Int: Int] = [:]
  /// How long it takes until each of the lamps that sleep wakes again, and until when it listens.
  private var periods: [Int: Double] = [:]
  private var awakeUntil: [Int: Double] = [:]
  /// Lamps that are without power.
  private let silent: Set<Int>
  /// The newest broadcast, and who has heard it.
  private var broadcast: Broadcast?
  /// What is planned, the latest first.
  private var agenda: [(at: Double, action: Action)] = []

  package init(_ mesh: MeshParameters, seed: UInt64, silent: Set<Int> = []) {
    self.mesh = mesh
    self.silent = silent
    generator = SeededGenerator(seed: seed)
  }

  /// Makes a lamp one that sleeps: it reports itself every so many milliseconds, and listens only
  /// for a while after that.
  package mutating func sleep(_ lamp: Int, period: Double) {
    periods[lamp] = period
    plan(.lampWakes(lamp: lamp), at: period * (1 + part()))
  }

  /// When something happens next, in milliseconds.
  package var next: Double? { agenda.last?.at }

  /// The adapter gets a command for a lamp.
  package mutating func send(_ value: Int, to lamp: Int, at now: Double) -> Event? {
    guard held < mesh.adapter else { return .dropped(lamp: lamp) }
    held += 1
    join(Message(lamp: lamp, value: value, leg: .command))
    sendFrame(at: now)
    return nil
  }

  /// Performs what is planned next.
  package mutating func step() -> Event? {
    guard let (now, action) = agenda.popLast() else { return nil }
    switch action {
    case .frameEnds(let message):
      isBusy = false
      defer { sendFrame(at: now) }
      return frameEnded(message, at: now)
    case .lampHears(let lamp, let value):
      acts(lamp, on: value, at: now)
      return .arrived(lamp: lamp, value: value)
    case .startsAgain(let message):
      if messages[message].leg != .broadcast { messages[message].hop = 0 }
      messages[message].frameTries = 0
      contenders.append(message)
    case .lampReports(let lamp) where mesh.reportFrame == 0:
      return .reported(lamp: lamp, value: values[lamp, default: 0])
    case .lampReports(let lamp): join(Message(lamp: lamp, value: 0, leg: .report))
    case .lampWakes(let lamp):
      awakeUntil[lamp] = now + Self.listening
      plan(.lampWakes(lamp: lamp), at: now + periods[lamp, default: 0] * (0.9 + 0.2 * part()))
      join(Message(lamp: lamp, value: 0, leg: .report))
    }
    sendFrame(at: now)
    return nil
  }

  // MARK: - Broadcasts

  /// One message for all lamps, which every router passes on.
  private struct Broadcast {
    /// How far away each lamp is that has not heard it.
    var missing: [Int: Int]
    /// How far away routers are that are no lamps, where there is no lamp at that distance.
    var gaps: Set<Int>
  }

  /// The adapter gets a command for all of so many lamps.
  package mutating func sendToAll(_ value: Int, lamps: Int, at now: Double) -> Event? {
    guard held < mesh.adapter else { return .dropped(lamp: 0) }
    held += 1
    var missing: [Int: Int] = [:]
    for lamp in 0..<lamps where !silent.contains(lamp) {
      missing[lamp] = mesh.hops[lamp % mesh.hops.count]
    }
    let gaps = Set(1...(missing.values.max() ?? 1)).subtracting(missing.values)
    broadcast = Broadcast(missing: missing, gaps: gaps)
    contenders.append(messages.count)
    messages.append(Message(lamp: -1, value: value, leg: .broadcast))
    sendFrame(at: now)
    return nil
  }

  /// A frame of a broadcast has ended: all that are one hop further, or as near, may have heard it.
  private mutating func broadcastEnded(_ place: Int, at now: Double) {
    let message = messages[place]
    let loss = min(0.9, mesh.loss + mesh.collision * Double(contenders.count))
    messages[place].messageTries += 1
    if message.hop == 0, message.messageTries == 0 { held -= 1 }
    let near = { (distance: Int) in abs(distance - message.hop) <= 1 }
    for (lamp, distance) in (broadcast?.missing ?? [:]).sorted(by: { $0.key < $1.key })
    where near(distance) && part() >= loss {
      broadcast?.missing[lamp] = nil
      plan(.lampHears(lamp: lamp, value: message.value), at: now)
      planRelay(message.value, from: distance, at: now)
    }
    for distance in (broadcast?.gaps ?? []).sorted() where near(distance) && part() >= loss {
      broadcast?.gaps.remove(distance)
      planRelay(message.value, from: distance, at: now)
    }
    let isMissed =
      broadcast.map { $0.missing.values.contains(where: near) || $0.gaps.contains(where: near) }
    if isMissed == true, messages[place].messageTries < mesh.broadcastTries {
      plan(.startsAgain(place), at: now + mesh.broadcastPatience)
    }
  }

  private mutating func planRelay(_ value: Int, from distance: Int, at now: Double) {
    messages.append(Message(lamp: -1, value: value, leg: .broadcast, hop: distance))
    plan(.startsAgain(messages.count - 1), at: now + mesh.relayDelay * part())
  }

  // MARK: - Turns

  /// Lets a message wait for its turn among those of its lamp.
  private mutating func join(_ message: Message) {
    messages.append(message)
    let turns = Turns(lamp: message.lamp, leg: message.leg)
    lines[turns, default: Line()].waiting.append(messages.count - 1)
    advance(turns)
  }

  private mutating func advance(_ turns: Turns) {
    guard var line = lines[turns], line.sending < mesh.perLamp, !line.waiting.isEmpty else {
      return
    }
    if turns.leg == .command {
      guard working < mesh.atOnce else { return }
      working += 1
    }
    line.sending += 1
    contenders.append(line.waiting.removeFirst())
    lines[turns] = line
  }

  /// A message has arrived or was given up: the next one of its lamp has its turn.
  private mutating func leave(_ message: Message) {
    guard message.leg != .acknowledgement else { return }
    let turns = Turns(lamp: message.lamp, leg: message.leg)
    lines[turns, default: Line()].sending -= 1
    if message.leg == .command {
      held -= 1
      working -= 1
      if mesh.atOnce < .max { return advanceOldest() }
    }
    advance(turns)
  }

  /// The command that has waited longest has its turn.
  private mutating func advanceOldest() {
    let ready = lines.filter {
      $0.key.leg == .command && $0.value.sending < mesh.perLamp && !$0.value.waiting.isEmpty
    }
    if let oldest = ready.min(by: { $0.value.waiting[0] < $1.value.waiting[0] }) {
      advance(oldest.key)
    }
  }

  // MARK: - The channel

  /// Gives the free channel to one of those that want it.
  private mutating func sendFrame(at now: Double) {
    guard !isBusy, !contenders.isEmpty else { return }
    let place = contenders.remove(at: generator.below(contenders.count))
    isBusy = true
    // A lamp reports what it has when the report leaves.
    if messages[place].leg == .report, messages[place].hop == 0 {
      messages[place].value = values[messages[place].lamp, default: 0]
    }
    let frame = messages[place].leg == .report ? mesh.reportFrame ?? mesh.frame : mesh.frame
    plan(.frameEnds(place), at: now + frame * (0.7 + 0.6 * part()))
  }

  private mutating func frameEnded(_ place: Int, at now: Double) -> Event? {
    let message = messages[place]
    guard message.leg != .broadcast else {
      broadcastEnded(place, at: now)
      return nil
    }
    let isLastHop = message.hop + 1 >= mesh.hops[message.lamp % mesh.hops.count]
    let loss = min(0.9, mesh.loss + mesh.collision * Double(contenders.count))
    let isHeard = message.leg != .command || !isLastHop || listens(message.lamp, at: now)
    guard part() >= loss, isHeard else {
      messages[place].frameTries += 1
      if messages[place].frameTries < mesh.frameTries {
        contenders.append(place)
      } else {
        giveUp(place, at: now)
      }
      return nil
    }
    messages[place].frameTries = 0
    messages[place].hop += 1
    guard isLastHop else {
      contenders.append(place)
      return nil
    }
    return arrived(message, at: now)
  }

  private func listens(_ lamp: Int, at now: Double) -> Bool {
    guard periods[lamp] != nil else { return !silent.contains(lamp) }
    return awakeUntil[lamp].map { now <= $0 } ?? false
  }

  private mutating func giveUp(_ place: Int, at now: Double) {
    messages[place].messageTries += 1
    if messages[place].messageTries < mesh.messageTries, messages[place].leg != .acknowledgement {
      plan(.startsAgain(place), at: now + mesh.patience)
    } else {
      leave(messages[place])
    }
  }

  private mutating func arrived(_ message: Message, at now: Double) -> Event? {
    let lamp = message.lamp
    leave(message)
    switch message.leg {
    case .command:
      if mesh.isAcknowledged {
        contenders.append(messages.count)
        messages.append(Message(lamp: lamp, value: message.value, leg: .acknowledgement))
      }
      acts(lamp, on: message.value, at: now)
      return .arrived(lamp: lamp, value: message.value)
    case .acknowledgement, .broadcast: return nil
    case .report: return .reported(lamp: lamp, value: message.value)
    }
  }

  /// A lamp has a value, and reports it soon.
  private mutating func acts(_ lamp: Int, on value: Int, at now: Double) {
    values[lamp] = value
    if periods[lamp] != nil { awakeUntil[lamp] = now + Self.listening }
    let time = mesh.lamp * (1 - mesh.jitter / 2 + mesh.jitter * part())
    plan(.lampReports(lamp: lamp), at: now + time)
  }

  private mutating func plan(_ action: Action, at time: Double) {
    let place = agenda.firstIndex { $0.at <= time } ?? agenda.count
    agenda.insert((time, action), at: place)
  }

  /// A number from 0 up to 1.
  private mutating func part() -> Double { Double(generator.below(1 << 30)) / Double(1 << 30) }
}

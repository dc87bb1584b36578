// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOutTesting

/// A radio mesh between an adapter and lamps, on virtual time.
///
/// All frames share one channel, which carries one frame at a time. A command crosses the mesh hop by
/// hop; the lamp acknowledges it and, after it has acted, reports its state the same way. It knows
/// nothing of lanes: it is the judge of what a lane does.
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

  private enum Leg { case command, acknowledgement, report }

  private struct Message {
    let lamp: Int
    let value: Int
    let leg: Leg
    var hop = 0
    var frameTries = 0
    var messageTries = 0
  }

  private enum Action {
    case frameEnds(Int)
    case startsAgain(Int)
    case lampReports(Int)
  }

  private let mesh: MeshParameters
  private var generator: SeededGenerator
  private var messages: [Message] = []
  /// The messages whose next frame waits for the channel.
  private var contenders: [Int] = []
  private var isBusy = false
  private var held = 0
  /// What is planned, the latest first.
  private var agenda: [(at: Double, action: Action)] = []

  package init(_ mesh: MeshParameters, seed: UInt64) {
    self.mesh = mesh
    generator = SeededGenerator(seed: seed)
  }

  /// When something happens next, in milliseconds.
  package var next: Double? { agenda.last?.at }

  /// The adapter gets a command for a lamp.
  package mutating func send(_ value: Int, to lamp: Int, at now: Double) -> Event? {
    guard held < mesh.adapter else { return .dropped(lamp: lamp) }
    held += 1
    start(Message(lamp: lamp, value: value, leg: .command), at: now)
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
    case .startsAgain(let message), .lampReports(let message):
      messages[message].hop = 0
      messages[message].frameTries = 0
      contenders.append(message)
      sendFrame(at: now)
      return nil
    }
  }

  private mutating func start(_ message: Message, at now: Double) {
    messages.append(message)
    contenders.append(messages.count - 1)
    sendFrame(at: now)
  }

  /// Gives the free channel to one of those that want it.
  private mutating func sendFrame(at now: Double) {
    guard !isBusy, !contenders.isEmpty else { return }
    let message = contenders.remove(at: generator.below(contenders.count))
    isBusy = true
    plan(.frameEnds(message), at: now + mesh.frame * (0.7 + 0.6 * part()))
  }

  private mutating func frameEnded(_ place: Int, at now: Double) -> Event? {
    let loss = min(0.9, mesh.loss + mesh.collision * Double(contenders.count))
    guard part() >= loss else {
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
    if messages[place].hop < mesh.hops[messages[place].lamp % mesh.hops.count] {
      contenders.append(place)
      return nil
    }
    return arrived(messages[place], at: now)
  }

  private mutating func giveUp(_ place: Int, at now: Double) {
    messages[place].messageTries += 1
    if messages[place].messageTries < mesh.messageTries, messages[place].leg != .acknowledgement {
      plan(.startsAgain(place), at: now + mesh.patience)
    } else if messages[place].leg == .command {
      held -= 1
    }
  }

  private mutating func arrived(_ message: Message, at now: Double) -> Event? {
    let (lamp, value) = (message.lamp, message.value)
    switch message.leg {
    case .command:
      held -= 1
      contenders.append(messages.count)
      messages.append(Message(lamp: lamp, value: value, leg: .acknowledgement))
      messages.append(Message(lamp: lamp, value: value, leg: .report))
      let time = mesh.lamp * (1 - mesh.jitter / 2 + mesh.jitter * part())
      plan(.lampReports(messages.count - 1), at: now + time)
      return .arrived(lamp: lamp, value: value)
    case .acknowledgement: return nil
    case .report: return .reported(lamp: lamp, value: value)
    }
  }

  private mutating func plan(_ action: Action, at time: Double) {
    let place = agenda.firstIndex { $0.at <= time } ?? agenda.count
    agenda.insert((time, action), at: place)
  }

  /// A number from 0 up to 1.
  private mutating func part() -> Double { Double(generator.below(1 << 30)) / Double(1 << 30) }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
package import Devices
import JSON
import LastOut
import LastOutTesting

/// Lamps that share a lane, driven by the gateway's command machine through a ``Mesh``.
///
/// Each lamp confirms a command by its report within 5 s, and gets two more attempts.
package struct Scene: ~Copyable {
  /// What one instant with a command for each lamp led to.
  package struct Outcome: Sendable {
    /// Milliseconds until the last command ended.
    package var time = 0.0
    /// Commands that the adapter dropped.
    package var dropped = 0
    /// Commands that were sent again.
    package var repeated = 0
    /// Commands that failed.
    package var lost = 0
    /// Lamps that have the value, whatever the gateway knows of it.
    package var arrived = 0
    /// Milliseconds until the last lamp got its value.
    package var lastArrival = 0.0
    /// Milliseconds from the urgent value, if there was one, to its message.
    package var urgentDelay: Double?
  }

  private var machine: CommandStateMachine
  private var mesh: Mesh
  private var generator: SeededGenerator
  private var now = Moment(nanoseconds: 1_000_000_000)
  private let lamps: Int
  private let silent: Set<Int>
  private var round = 0
  /// Changes that were accepted and whose end was not emitted.
  private var open = 0
  private var shown: [Int: Int] = [:]

  /// - Parameters:
  ///   - mesh: The mesh between the gateway and the lamps.
  ///   - lamps: How many there are.
  ///   - limits: The limits of their lane; `nil` for a house without lanes.
  ///   - seed: Where the numbers of chance begin.
  ///   - silent: Lamps that are without power.
  package init(
    _ mesh: MeshParameters,
    lamps: Int,
    limits: LaneLimits?,
    seed: UInt64,
    silent: Set<Int> = []
  ) {
    self.lamps = lamps
    self.silent = silent
    self.mesh = Mesh(mesh, seed: seed)
    generator = SeededGenerator(seed: ~seed)
    var settings = CommandSettings()
    if let limits { settings.lanes["mesh"] = limits }
    machine = CommandStateMachine(
      registry: Registry((0..<lamps).map(Self.lamp)),
      settings: settings
    )
    machine.dispatcher.log.isWatched = true
    machine.dispatcher.connectionChanged(isUp: true, at: now)
  }

  private static func lamp(_ number: Int) -> Device {
    let id = "lamp\(number)"
    var level = Property(
      id: "level",
      kind: .integer(NumberRule(range: 0...1_000_000, step: 1)),
      policy: Policy(delay: .zero),
      command: CommandEndpoint(topic: "\(id)/set", payload: PayloadTemplate("$value"))
    )
    level.state = StateSource(topic: id, value: .whole)
    level.confirm = Confirmation(within: .seconds(5), retries: 2)
    level.urgent = [.number(0)]
    var device = Device(id: id, name: id, properties: [level])
    device.lane = "mesh"
    return device
  }

  /// Sets all lamps at one instant and waits until every command has ended.
  ///
  /// `stopsAfter` sends an urgent value to the last lamp so many milliseconds later.
  package mutating func play(stopsAfter delay: Double? = nil) -> Outcome {
    round += 1
    let start = milliseconds
    var outcome = Outcome()
    for lamp in shuffled() { change(lamp, to: round) }
    var stop = delay.map { start + $0 }
    while true {
      send(&outcome, since: delay.map { start + $0 })
      record(&outcome, since: start)
      if let time = stop, milliseconds >= time {
        change(lamps - 1, to: 0)
        stop = nil
        continue
      }
      let times = [mesh.next, stop, machine.nextDeadline(after: now).map(Self.milliseconds)]
      guard let next = times.compactMap({ $0 }).min() else { break }
      if open == 0, stop == nil { break }
      pass(to: next, &outcome, since: start)
    }
    outcome.arrived = shown.values.count { $0 == round }
    return outcome
  }

  private var milliseconds: Double { Self.milliseconds(now) }

  private static func milliseconds(_ moment: Moment) -> Double {
    Double(moment.nanoseconds) / 1e6
  }

  private mutating func shuffled() -> [Int] {
    var order = Array(0..<lamps)
    for place in order.indices.dropFirst() {
      order.swapAt(place, generator.below(place + 1))
    }
    return order
  }

  private mutating func change(_ lamp: Int, to value: Int) {
    do {
      try machine.change(
        .set(.number(Double(value))),
        of: KeyIndex(Int32(lamp)),
        at: now,
        ChangeOptions()
      )
    } catch {
      preconditionFailure("A lamp's value is rejected: \(error)")
    }
    machine.advance(to: now)
  }

  private mutating func send(_ outcome: inout Outcome, since urgent: Double?) {
    while let publish = machine.dispatcher.nextPublish(at: now) {
      machine.dispatcher.finish(publish.token, .acknowledged, at: now)
      let lamp = Int(publish.keys[0].rawValue)
      let value = Int(String(decoding: publish.payload, as: UTF8.self)) ?? 0
      if value == 0, let urgent { outcome.urgentDelay = milliseconds - urgent }
      guard !silent.contains(lamp) else { continue }
      if case .dropped = mesh.send(value, to: lamp, at: milliseconds) { outcome.dropped += 1 }
    }
  }

  private mutating func record(_ outcome: inout Outcome, since start: Double) {
    for event in machine.dispatcher.log.events {
      if event.phase == .accepted { open += 1 }
      if event.phase.isFinal(canConfirm: true) {
        open -= 1
        outcome.time = milliseconds - start
      }
      if event.phase == .failed, !silent.contains(Int(event.key.rawValue)) { outcome.lost += 1 }
      if event.phase == .sending, event.attempt > 1 { outcome.repeated += 1 }
    }
    machine.dispatcher.log.events.removeAll(keepingCapacity: true)
    machine.dispatcher.log.statuses.changedKeys.removeAll(keepingCapacity: true)
  }

  private mutating func pass(to time: Double, _ outcome: inout Outcome, since start: Double) {
    let isMesh = mesh.next.map { $0 <= time } ?? false
    now = max(now, Moment(nanoseconds: UInt64((time * 1e6).rounded(.up))))
    if isMesh {
      switch mesh.step() {
      case .arrived(let lamp, let value):
        shown[lamp] = value
        outcome.lastArrival = milliseconds - start
      case .reported(let lamp, let value):
        machine.reported(KeyIndex(Int32(lamp)), .integer(Int64(value)), at: now)
      case .dropped, nil: break
      }
    }
    machine.advance(to: now)
  }
}

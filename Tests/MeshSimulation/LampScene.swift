// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
package import Devices
import LastOut
import LastOutTesting
import Values

/// Lamps that share a lane, driven by the gateway's command machine through a ``Mesh``.
///
/// Each lamp confirms a command by its report within 5 s, and gets two more attempts.
package struct LampScene: ~Copyable {
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

  /// The window of the lane at one moment.
  package struct WindowSample: Sendable {
    /// Milliseconds since the scene's start.
    package let at: Double
    package let size: Int
    package let inFlight: Int
  }

  private var station: Station
  private var generator: SeededGenerator
  private let lamps: Int
  private let silent: Set<Int>
  private let isGrouped: Bool
  private var round = 0
  private var start = Moment.zero
  /// Changes that were accepted and whose end was not emitted.
  private var open = 0
  /// Whether ``windows`` are recorded.
  package var recordsWindow = false
  /// The window whenever it changed during the last scene, if that is recorded.
  package private(set) var windows: [WindowSample] = []

  /// - Parameters:
  ///   - mesh: The mesh between the gateway and the lamps.
  ///   - lamps: How many there are.
  ///   - limits: The limits of their lane; `nil` for a house without lanes.
  ///   - seed: Where the numbers of chance begin.
  ///   - silent: Lamps that are without power.
  ///   - isGrouped: Whether the scene is a change of a group, which one message reaches.
  package init(
    _ mesh: MeshParameters,
    lamps: Int,
    limits: LaneLimits?,
    seed: UInt64,
    silent: Set<Int> = [],
    isGrouped: Bool = false
  ) {
    self.isGrouped = isGrouped
    self.lamps = lamps
    self.silent = silent
    generator = SeededGenerator(seed: ~seed)
    station = Station(
      (0..<lamps).map { Station.device("lamp\($0)", policy: Policy(delay: .zero)) },
      limits,
      Mesh(mesh, seed: seed, silent: silent),
      isGrouped: isGrouped
    )
  }

  /// Sets all lamps at one instant and waits until every command has ended.
  ///
  /// `stopsAfter` sends an urgent value to the last lamp so many milliseconds later.
  package mutating func play(stopsAfter delay: Double? = nil) -> Outcome {
    round += 1
    windows = []
    start = station.now
    var outcome = Outcome()
    let order = shuffled()
    if isGrouped {
      station.changeGroup(order, to: round)
    } else {
      for lamp in order { station.change(lamp, to: round) }
    }
    let urgent = delay.map { start.advanced(by: .milliseconds($0)) }
    var stop = urgent
    while true {
      send(&outcome, since: urgent)
      record(&outcome)
      if let moment = stop, station.now >= moment {
        station.change(lamps - 1, to: 0)
        stop = nil
        continue
      }
      guard let next = Moment.earlier(station.next, stop) else { break }
      if open == 0, stop == nil { break }
      if station.pass(to: next) != nil { outcome.lastArrival = elapsed }
    }
    outcome.arrived = station.shown.values.count { $0 == round }
    return outcome
  }

  /// Milliseconds since the scene's start.
  private var elapsed: Double { start.duration(to: station.now).inMilliseconds }

  private mutating func shuffled() -> [Int] {
    var order = Array(0..<lamps)
    for place in order.indices.dropFirst() {
      order.swapAt(place, generator.below(place + 1))
    }
    return order
  }

  private mutating func send(_ outcome: inout Outcome, since urgent: Moment?) {
    let sent = station.send()
    outcome.dropped += sent.dropped
    if let urgent, sent.values.contains(0) {
      outcome.urgentDelay = urgent.duration(to: station.now).inMilliseconds
    }
  }

  private mutating func record(_ outcome: inout Outcome) {
    for event in station.takeEvents() {
      if event.phase == .accepted { open += 1 }
      if event.phase.isFinal(canConfirm: true) {
        open -= 1
        outcome.time = elapsed
      }
      if event.phase == .failed, !silent.contains(Int(event.key.rawValue)) { outcome.lost += 1 }
      if event.phase == .sending, event.attempt > 1 { outcome.repeated += 1 }
    }
    if recordsWindow { recordWindow() }
  }

  private mutating func recordWindow() {
    guard let lane = station.lane, let size = lane.window, let inFlight = lane.inFlight else {
      return
    }
    if let last = windows.last, last.size == size, last.inFlight == inFlight { return }
    windows.append(WindowSample(at: elapsed, size: size, inFlight: inFlight))
  }
}

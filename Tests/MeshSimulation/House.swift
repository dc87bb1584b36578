// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
package import Devices
import LastOut
import Values

/// A house in which an ``Evening`` is played: sixty devices in one mesh.
package struct House: ~Copyable {
  /// The seed of the tests and of the documentation.
  package static let defaultSeed: UInt64 = 18

  /// How changes reach the adapter.
  package enum Way: Sendable {
    /// Every change is published at once; while the broker is away, nobody receives it.
    case direct
    /// Through the gateway's command machine; all devices share a lane, if it has limits.
    case settle(LaneLimits?)
  }

  /// What became of an evening.
  package struct Outcome: Hashable, Sendable {
    /// Changes that people made.
    package var changes = 0
    /// Messages to devices.
    package var messages = 0
    /// Messages that the adapter dropped.
    package var dropped = 0
    /// Gestures and scenes, device by device, that ended with a value for a device that works.
    package var finals = 0
    /// How many of these values the device did not have when the next gesture began.
    package var lost = 0
    /// Milliseconds from the last change of a gesture until the lamp had its value, in the middle.
    package var typical = 0.0
    /// The same at worst.
    package var worst = 0.0
    /// The same at worst for a valve, which sleeps.
    package var worstValve = 0.0
    /// Commands that the gateway reported as failed, those of the dead lamp left out.
    package var failed = 0

    package init() {}

    /// Adds another evening; the typical time is the largest of all evenings.
    package mutating func add(_ other: Outcome) {
      changes += other.changes
      messages += other.messages
      dropped += other.dropped
      finals += other.finals
      lost += other.lost
      failed += other.failed
      typical = max(typical, other.typical)
      worst = max(worst, other.worst)
      worstValve = max(worstValve, other.worstValve)
    }
  }

  private let evening: Evening
  private let way: Way
  private var station: Station
  private var outcome = Outcome()
  /// For each device the last change, until somebody makes another one.
  private var asked: [Int: Evening.Change] = [:]
  /// When each device got the value that it has.
  private var arrivals: [Int: (value: Int, at: Moment)] = [:]
  private var times: [Double] = []
  private let start: Moment

  package init(_ evening: Evening, _ mesh: MeshParameters, _ way: Way, seed: UInt64) {
    self.evening = evening
    self.way = way
    let limits: LaneLimits? = if case .settle(let limits) = way { limits } else { nil }
    var mesh = Mesh(mesh, seed: seed, silent: [Evening.deadLamp])
    for valve in Evening.valves {
      mesh.sleep(valve, period: Evening.valvePeriod.inMilliseconds)
    }
    station = Station((0..<Evening.deviceCount).map(Self.device), limits, mesh)
    start = station.now
  }

  private static func device(_ number: Int) -> Device {
    if Evening.valves.contains(number) {
      return Station.device(
        "valve\(number)",
        policy: Policy(delay: .milliseconds(800)),
        ttl: .seconds(600),
        sleeps: true
      )
    }
    let policy = Policy(delay: .milliseconds(300), maxWait: .seconds(2))
    return Station.device(
      "lamp\(number)",
      policy: Evening.liveLamps.contains(number) ? .live : policy
    )
  }

  /// Plays the whole evening, and some minutes more.
  package consuming func play() -> Outcome {
    var rest = evening.changes[...]
    var switches = [(at: Evening.outage.from, isUp: false), (at: Evening.outage.to, isUp: true)][
      ...
    ]
    let end = start.advanced(by: Evening.end + .seconds(300))
    while true {
      handOver()
      let moments = [rest.first?.at, switches.first?.at].map { $0.map(start.advanced(by:)) }
      let next = (moments + [station.next, end]).compactMap { $0 }.min() ?? end
      guard next < end else { break }
      if let device = station.pass(to: next), let value = station.shown[device],
        arrivals[device]?.value != value
      {
        arrivals[device] = (value, station.now)
      }
      if let first = switches.first, isDue(first.at) {
        switches.removeFirst()
        station.connect(first.isUp)
      }
      while let change = rest.first, isDue(change.at) {
        rest.removeFirst()
        make(change)
      }
    }
    for change in asked.values { judge(change) }
    times.sort()
    outcome.typical = times.isEmpty ? 0 : times[times.count / 2]
    outcome.worst = times.last ?? 0
    return outcome
  }

  private func isDue(_ time: Duration) -> Bool { start.advanced(by: time) <= station.now }

  private mutating func make(_ change: Evening.Change) {
    if let before = asked[change.device] { judge(before) }
    asked[change.device] = change
    outcome.changes += 1
    switch way {
    case .direct:
      guard station.isConnected else { return }
      outcome.messages += 1
      if station.publish(change.value, to: change.device) { outcome.dropped += 1 }
    case .settle: station.change(change.device, to: change.value)
    }
  }

  /// Looks whether a device has what was asked for last.
  private mutating func judge(_ change: Evening.Change) {
    guard change.isFinal, change.device != Evening.deadLamp else { return }
    outcome.finals += 1
    if let arrival = arrivals[change.device], arrival.value == change.value {
      let time = start.advanced(by: change.at).duration(to: arrival.at).inMilliseconds
      if Evening.valves.contains(change.device) {
        outcome.worstValve = max(outcome.worstValve, time)
      } else {
        times.append(time)
      }
    } else {
      outcome.lost += 1
    }
  }

  private mutating func handOver() {
    let sent = station.send()
    outcome.messages += sent.values.count
    outcome.dropped += sent.dropped
    for event in station.takeEvents() {
      let isDead = event.key.rawValue == Int32(Evening.deadLamp)
      if event.phase == .failed || event.phase == .expired, !isDead { outcome.failed += 1 }
    }
  }
}

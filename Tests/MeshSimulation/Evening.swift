// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOutTesting

/// What people ask of a house of sixty devices in one evening, from six until eleven.
///
/// Scenes set many devices at one instant. Sliders and knobs ask for each value that they pass, 60
/// times a second at most. Every value is asked for once in the evening, so a value tells which
/// change it belongs to.
package struct Evening: Sendable {
  /// Somebody asks for a value.
  package struct Change: Hashable, Sendable {
    /// The time since six o'clock.
    package let at: Duration
    package let device: Int
    package let value: Int
    /// Whether nobody asks for another value of the device within the next 20 seconds, of a valve
    /// within the next 10 minutes, so that the device must have this one in the end.
    package fileprivate(set) var isFinal = false
  }

  package static let deviceCount = 60
  /// The devices that are valves of radiators; all others are lamps.
  package static let valves = 52..<60
  /// A lamp that somebody has switched off at the wall.
  package static let deadLamp = 17
  /// Lamps that follow the finger.
  static let liveLamps = Set([2, 9, 31])
  /// When the broker is away, because it restarts: during a drag and a small scene.
  static let outage = (from: time(21, 10, 0), to: time(21, 10, 8))
  /// How often a valve wakes and reports itself.
  static let valvePeriod = Duration.seconds(240)
  package static let end = time(23, 0, 0)

  /// In the order of time.
  package private(set) var changes: [Change] = []

  package init(seed: UInt64) {
    var hands = Hands(seed: seed)
    hands.scene(at: Self.time(18, 5, 0), devices: Array(0..<24))
    hands.scene(at: Self.time(19, 0, 0), devices: Array(10..<40))
    hands.scene(at: Self.time(20, 15, 0), devices: Array(0..<60))
    // The wrong scene, and a second later the right one.
    hands.scene(at: Self.time(20, 40, 0), devices: Array(0..<30))
    hands.scene(at: Self.time(20, 40, 1), devices: Array(0..<48))
    hands.drag(3, at: Self.time(21, 9, 59))
    hands.scene(at: Self.time(21, 10, 4), devices: Array(40..<46))
    hands.scene(at: Self.time(22, 30, 0), devices: Array(0..<60))
    for _ in 0..<60 { hands.dragSomething() }
    for _ in 0..<20 { hands.tapSomething() }
    for valve in Self.valves { hands.turnKnob(of: valve) }
    changes = hands.changes.enumerated().sorted {
      ($0.element.at, $0.offset) < ($1.element.at, $1.offset)
    }.map(\.element)
    markFinals()
  }

  private mutating func markFinals() {
    var next: [Int: Duration] = [:]
    for place in changes.indices.reversed() {
      let change = changes[place]
      let pause = Duration.seconds(Self.valves.contains(change.device) ? 600 : 20)
      changes[place].isFinal = next[change.device].map { $0 - change.at >= pause } ?? true
      next[change.device] = change.at
    }
  }

  private static func time(_ hour: Int, _ minute: Int, _ second: Int) -> Duration {
    .seconds(((hour - 18) * 60 + minute) * 60 + second)
  }
}

/// The hands that make the changes.
private struct Hands {
  private(set) var changes: [Evening.Change] = []
  private var generator: SeededGenerator
  private var count = 0

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  mutating func scene(at time: Duration, devices: [Int]) {
    for device in devices { ask(device, at: time) }
  }

  /// A hand reaches for another place: slow, fast, slow again, one change a frame at most.
  mutating func drag(_ lamp: Int, at start: Duration) {
    let duration = 600 + 1600 * part()
    let marks = 20 + Int(120 * part())
    var last = -1
    for frame in 1...Int(duration / 16) {
      let time = Double(frame) * 16 / duration
      let path = time * time * time * (10 + time * (6 * time - 15))
      let mark = Int(path * Double(marks))
      if mark != last { ask(lamp, at: start + .milliseconds(Double(frame) * 16 + 4 * part())) }
      last = mark
    }
  }

  mutating func dragSomething() {
    let (lamp, at) = (generator.below(Evening.valves.lowerBound), someTime())
    drag(lamp, at: at)
    // One in three goes back a little, and one in five happens while somebody else drags.
    if generator.below(3) == 0 { drag(lamp, at: at + .seconds(3)) }
    if generator.below(5) == 0 { drag((lamp + 5) % 40, at: at + .milliseconds(300)) }
  }

  mutating func tapSomething() {
    let device = generator.below(Evening.deviceCount)
    var at = someTime()
    for _ in 0..<(4 + generator.below(9)) {
      ask(device, at: at)
      at += .milliseconds(150 + 250 * part())
    }
  }

  mutating func turnKnob(of valve: Int) {
    var at = someTime()
    for _ in 0..<(2 + generator.below(3)) {
      for _ in 0..<(3 + generator.below(5)) {
        ask(valve, at: at)
        at += .milliseconds(50 + 70 * part())
      }
      at += .milliseconds(280 + 200 * part())
    }
  }

  private mutating func ask(_ device: Int, at time: Duration) {
    count += 1
    changes.append(Evening.Change(at: time, device: device, value: count))
  }

  /// Not in the last 40 minutes, which hold the last scene.
  private mutating func someTime() -> Duration {
    .milliseconds(part() * (Evening.end - .seconds(2400)).inMilliseconds)
  }

  private mutating func part() -> Double { Double(generator.below(1 << 30)) / Double(1 << 30) }
}

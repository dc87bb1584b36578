// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
package import Devices
internal import JSON
package import LastOut
import Values

/// The lanes in which a trial paces commands.
package struct TrialLanes: Sendable {
  /// The limits by name.
  package var limits: [String: LaneLimits] = [:]
  /// The lane of every key, whatever their devices name; `nil` for the lane of each device.
  package var shared: String?
  /// How long devices take to confirm a command, for lanes with a window.
  package var roundTrip: Duration = .milliseconds(200)

  package init() {}

  /// The lane with a limit that paces the commands of a key.
  func lane(of key: Recording.Key) -> String? {
    guard let name = shared ?? key.lane, limits[name] != nil else { return nil }
    return name
  }
}

/// Plays a recording through the gateway's command machine on a virtual clock, with one key under a
/// policy of choice.
///
/// All other keys have their own policies. The broker acknowledges at once; where the lane has a
/// window, each device confirms after the same time.
struct PolicyTrial: ~Copyable {
  private let recording: Recording
  /// The key that is tried, by its position in the recording.
  private let key: Int
  private let gestures: Gestures
  private let lanes: TrialLanes
  private let lane: String?
  /// The entries that matter: those of the key's device and of its lane.
  private let positions: [Int]
  /// The machine's index of each key of the recording.
  private let indices: [KeyIndex]
  private var machine: CommandStateMachine
  private var now = Moment.zero
  /// What devices will report, the earliest first.
  private var reports: [(at: Moment, key: KeyIndex, position: Int)] = []
  /// Changes of the key that no command has carried yet.
  private var open: [Int] = []
  private var outcome = TrialOutcome()

  init(
    _ policy: Policy,
    for key: Int,
    in recording: Recording,
    _ gestures: Gestures,
    _ lanes: TrialLanes
  ) {
    self.recording = recording
    self.key = key
    self.gestures = gestures
    self.lanes = lanes
    let lane = lanes.lane(of: recording.keys[key])
    self.lane = lane
    let device = recording.keys[key].device
    let isRelevant = recording.keys.map { other in
      other.device == device || (lane != nil && lanes.lane(of: other) == lane)
    }
    positions = recording.entries.indices.filter { isRelevant[recording.entries[$0].key] }
    let registry = TrialRegistry(recording, lanes, policy: policy, for: key)
    indices = registry.indices
    var settings = CommandSettings()
    settings.lanes = lanes.limits
    machine = CommandStateMachine(registry: registry.registry, settings: settings)
    machine.connectionChanged(isUp: true, at: now)
  }

  /// Plays everything, until nothing waits.
  consuming func play() -> TrialOutcome {
    var rest = positions[...]
    while true {
      let next = rest.first.map { recording.entries[$0].at }
      let due = [machine.nextDeadline(after: now), reports.first?.at].compactMap { $0 }.min()
      guard let moment = [next, due].compactMap({ $0 }).min() else { break }
      now = max(now, moment)
      // What is due at an instant is over before anything else of that instant.
      report()
      machine.advance(to: now)
      send()
      while let position = rest.first, recording.entries[position].at <= now {
        rest.removeFirst()
        perform(position)
      }
      machine.advance(to: now)
      send()
    }
    return outcome
  }

  private mutating func perform(_ position: Int) {
    let entry = recording.entries[position]
    let index = indices[entry.key]
    switch entry.operation {
    case .cancel: machine.cancel(index, at: now)
    case .flush: machine.flush(index, at: now)
    case .change(let skipsQuiet, _):
      if entry.key == key { open.append(position) }
      do {
        try machine.change(
          .set(.number(Double(position))),
          of: index,
          at: now,
          ChangeOptions(skipsQuiet: skipsQuiet)
        )
      } catch {
        // Too many keys wait: the change is lost, as in a gateway.
        if entry.key == key { open.removeLast() }
      }
    }
  }

  private mutating func report() {
    while let first = reports.first, first.at <= now {
      reports.removeFirst()
      machine.reported(first.key, .integer(Int64(first.position)), at: now)
    }
  }

  private mutating func send() {
    while let publish = machine.nextPublish(at: now) {
      machine.finish(publish.token, .acknowledged, at: now)
    }
    for event in machine.log.events {
      guard case .number(let number) = event.value else { continue }
      let position = Int(number)
      switch event.phase {
      case .sent:
        if !machine.registry[event.key].property.states.isEmpty {
          reports.append((now.advanced(by: lanes.roundTrip), event.key, position))
        }
        if event.key == indices[key] { record(position) }
      case .cancelled:
        // Nobody waits for a change that was cancelled.
        if event.key == indices[key] { open.removeAll { $0 <= position } }
      case .accepted, .superseded, .unchanged, .rejected, .sending, .confirmed, .failed, .expired:
        break
      }
    }
    machine.log.events.removeAll(keepingCapacity: true)
    machine.log.statuses.changedKeys.removeAll(keepingCapacity: true)
    guard let lane else { return }
    let waiting = machine.sendQueue.laneStatuses.first { $0.name == lane }?.waiting ?? 0
    outcome.mostQueued = max(outcome.mostQueued, waiting)
  }

  /// A command carried the change at `position`, and so stands for all before it.
  private mutating func record(_ position: Int) {
    outcome.commands.append(TrialOutcome.Sent(at: now, position: position))
    for change in open.prefix(while: { $0 <= position }) {
      let wait = recording.entries[change].at.duration(to: now)
      outcome.worstWait = max(outcome.worstWait, wait)
      if gestures.isLast(change) { outcome.finalWaits.append(wait) }
    }
    open.removeAll { $0 <= position }
  }
}

/// The devices of a recording for a trial: their values are positions in the recording.
struct TrialRegistry {
  let registry: Registry
  /// The index of each key of the recording.
  let indices: [KeyIndex]

  init(_ recording: Recording, _ lanes: TrialLanes, policy: Policy, for key: Int) {
    var devices: [Device] = []
    var places: [Int] = []
    for (number, entry) in recording.keys.enumerated() {
      if entry.device == devices.count {
        devices.append(Device(id: "d\(entry.device)", name: "", properties: []))
      }
      devices[entry.device].lane = lanes.lane(of: entry) ?? devices[entry.device].lane
      places.append(devices[entry.device].properties.count)
      var property = Self.property(number, entry, number == key ? policy : entry.policy)
      property.urgent = recording.urgentPositions(of: number).map { .number(Double($0)) }
      if let name = lanes.lane(of: entry), lanes.limits[name]?.window != nil {
        property.state = StateSource(topic: "s\(number)", value: .whole)
        property.confirm = Confirmation()
      }
      devices[entry.device].properties.append(property)
    }
    var count = 0
    let firsts = devices.map { device in
      defer { count += device.properties.count }
      return count
    }
    registry = Registry(devices)
    indices = zip(recording.keys, places).map { KeyIndex(Int32(firsts[$0.device] + $1)) }
  }

  private static func property(_ number: Int, _ key: Recording.Key, _ policy: Policy) -> Property {
    var property = Property(
      id: key.property?.id ?? "p\(number)",
      kind: .integer(NumberRule()),
      policy: policy,
      command: CommandEndpoint(topic: "c\(number)", payload: PayloadTemplate("$value"))
    )
    property.ends = key.property?.ends ?? []
    property.excludes = key.property?.excludes ?? []
    return property
  }
}

extension Recording {
  /// The changes of a key to values that are sent at once.
  func urgentPositions(of key: Int) -> [Int] {
    entries.indices.filter { position in
      guard entries[position].key == key else { return false }
      if case .change(_, isUrgent: true) = entries[position].operation { return true }
      return false
    }
  }
}

/// What one policy makes of the changes of one key.
package struct TrialOutcome: Hashable, Sendable {
  /// A command that left.
  package struct Sent: Hashable, Sendable {
    package let at: Moment
    /// The change whose value it carried.
    let position: Int
  }

  package internal(set) var commands: [Sent] = []
  /// For each gesture, how long after its last change that value, or a newer one, was sent.
  var finalWaits: [Duration] = []
  /// How long a change waited at most until its value, or a newer one, was sent.
  package internal(set) var worstWait = Duration.zero
  /// How many commands waited at once in the lane of the key.
  package internal(set) var mostQueued = 0

  /// The lateness of the final value of the gesture in the middle.
  package var typicalFinal: Duration {
    let sorted = finalWaits.sorted()
    return sorted.isEmpty ? .zero : sorted[(sorted.count - 1) / 2]
  }

  package var worstFinal: Duration { finalWaits.max() ?? .zero }

  /// Whether it is as good as `other` in everything and better in something, to the millisecond.
  func dominates(_ other: TrialOutcome) -> Bool {
    let pairs = zip(figures, other.figures)
    return pairs.allSatisfy { $0 <= $1 } && pairs.contains { $0 < $1 }
  }

  /// What is better when it is less.
  private var figures: [Int64] {
    let durations = [typicalFinal, worstFinal, worstWait]
    return [Int64(commands.count)] + durations.map { ($0.wholeNanoseconds + 500_000) / 1_000_000 }
  }
}

/// The gestures of a recording: changes of one key that follow each other closely.
package struct Gestures: Sendable {
  private let lasts: Set<Int>
  /// For each key, the positions of the first and the last change of each gesture, and their
  /// number.
  private let spans: [Int: [Span]]

  package struct Span: Hashable, Sendable {
    package internal(set) var first: Int
    package internal(set) var last: Int
    package internal(set) var count: Int
  }

  /// A pause of at least `pause` begins another gesture.
  package init(of recording: Recording, pause: Duration) {
    var spans: [Int: [Span]] = [:]
    for (position, entry) in recording.entries.enumerated() where entry.isChange {
      var own = spans[entry.key] ?? []
      if let last = own.last, recording.entries[last.last].at.duration(to: entry.at) < pause {
        own[own.count - 1].last = position
        own[own.count - 1].count += 1
      } else {
        own.append(Span(first: position, last: position, count: 1))
      }
      spans[entry.key] = own
    }
    self.spans = spans
    lasts = Set(spans.values.joined().map(\.last))
  }

  func isLast(_ position: Int) -> Bool { lasts.contains(position) }

  package func of(_ key: Int) -> [Span] { spans[key] ?? [] }

  /// The gesture of a key with the most changes.
  func busiest(of key: Int) -> Span? {
    of(key).reduce(nil) { best, span in (best?.count ?? 0) >= span.count ? best : span }
  }
}

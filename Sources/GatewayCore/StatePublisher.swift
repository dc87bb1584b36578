// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
package import LastOut
import Routing
import Values

/// Which of the gateway's own retained topics are due: a property's target, a device's targets, a
/// device's info.
///
/// At most one of each per 100 ms, the first at once, the last guaranteed; where many move at once,
/// each at the ``StatePace``.
package struct StatePublisher: ~Copyable {
  /// One retained topic.
  package enum Item: Hashable, Sendable {
    case target(KeyIndex)
    case targets(device: Int)
    case info(device: Int)
  }

  /// What changed too soon after it was shown.
  private var queue: LastOutCore<Bool>
  private var pace = StatePace()
  /// From when on each topic may be shown again.
  private var readyAt: [Moment] = []
  /// What each place shows; a topic gets its place when it is first due, and keeps it.
  private var items: [Item] = []
  /// The place of each property's target, and of each device's targets, with its info behind.
  ///
  /// -1 for a topic that was never due.
  private var targetPlaces = LazyArray<Int32>(repeating: -1, count: 0)
  private var devicePlaces = LazyArray<Int32>(repeating: -1, count: 0)
  /// What waits for room at the broker, each once.
  private var due = Deque<Int32>()
  private var isDue: [Bool] = []
  /// A digest of what each topic showed last on this connection.
  private var shown: [Int?] = []
  /// The broker may keep something of these topics, from this connection or one before.
  private var mayBeKept: [Bool] = []

  init(properties: Int, devices: Int) {
    let policy = Policy(delay: .nanoseconds(StatePace.usual))
    queue = LastOutCore(policy: policy)
    extend(properties: properties, devices: devices)
  }

  /// Makes room for more keys and devices.
  mutating func extend(properties: Int, devices: Int) {
    targetPlaces.extend(to: properties)
    devicePlaces.extend(to: devices)
  }

  private mutating func place(ofTarget key: KeyIndex) -> Int32 {
    let known = targetPlaces[key]
    if known >= 0 { return known }
    let place = add(.target(key))
    targetPlaces[key] = place
    return place
  }

  /// The place of a device's targets; that of its info follows.
  private mutating func place(ofDevice device: Int) -> Int32 {
    let known = devicePlaces[device]
    if known >= 0 { return known }
    let place = add(.targets(device: device))
    _ = add(.info(device: device))
    devicePlaces[device] = place
    return place
  }

  private mutating func add(_ item: Item) -> Int32 {
    items.append(item)
    readyAt.append(.zero)
    isDue.append(false)
    shown.append(nil)
    mayBeKept.append(false)
    return Int32(items.count - 1)
  }

  var nextDeadline: Moment? { queue.nextDeadline }
  package var isEmpty: Bool { due.isEmpty }
  /// Topics to be shown as soon as there is room.
  package var dueCount: Int { due.count }

  /// Records which topics show something else since the last call; those of devices `elsewhere` are
  /// not this gateway's.
  ///
  /// - Returns: The keys that changed, possibly more than once each.
  mutating func collectChanges(
    of commands: inout CommandStateMachine,
    apartFrom elsewhere: DevicesElsewhere = DevicesElsewhere(),
    at now: Moment
  ) -> [KeyIndex] {
    guard !commands.log.statuses.changedKeys.isEmpty else { return [] }
    let keys = commands.log.statuses.changedKeys
    commands.log.statuses.changedKeys.removeAll(keepingCapacity: true)
    let registry = commands.registry
    for key in keys {
      let device = registry.device(of: key)
      if elsewhere.contains(device) { continue }
      if commands.log.statuses.takeNewTarget(of: key) {
        changed(key, device: device, at: now)
      } else {
        changedInfo(ofDevice: device, at: now)
      }
    }
    advance(to: now)
    return keys
  }

  /// The next topic to be published now, and its payload; `nil` when none is due.
  mutating func next(
    of commands: borrowing CommandStateMachine,
    at now: Moment
  ) -> (item: Item, payload: [UInt8], place: Int32)? {
    while let place = nextDue(at: now) {
      let item = item(at: place)
      let payload = item.payload(of: commands, at: now)
      if record(payload, at: place) { return (item, payload, place) }
      readyAt[Int(place)] = now  // Nothing was shown, so the next change need not wait.
    }
    return nil
  }

  /// What was asked of `key` changed.
  mutating func changed(_ key: KeyIndex, device: Int, at now: Moment) {
    changed(KeyIndex(place(ofTarget: key)), at: now)
    changed(KeyIndex(place(ofDevice: device)), at: now)
    changedInfo(ofDevice: device, at: now)
  }

  /// Something beside its targets changed of a device.
  mutating func changedInfo(ofDevice device: Int, at now: Moment) {
    changed(KeyIndex(place(ofDevice: device) + 1), at: now)
  }

  private mutating func changed(_ topic: KeyIndex, at now: Moment) {
    // What is due shows the newest when there is room for it.
    guard !isDue[Int(topic.rawValue)], !queue.isPending(topic) else { return }
    let ready = readyAt[Int(topic.rawValue)]
    if ready <= now { return makeDue(topic.rawValue) }
    queue.enqueue(true, for: topic, at: now, delay: now.duration(to: ready))
  }

  mutating func advance(to now: Moment) {
    while let run = queue.nextRun(at: now) {
      queue.finish(run.key, at: now)
      makeDue(run.key.rawValue)
    }
  }

  /// Makes everything that changed due now, for a shutdown.
  mutating func flush(at now: Moment) {
    for key in queue.pendingKeys() {
      if case .run(let run) = queue.flush(key, at: now) {
        queue.finish(run.key, at: now)
        makeDue(run.key.rawValue)
      }
    }
  }

  /// Shows `device` again although nothing changed.
  package mutating func repeatTargets(ofDevice device: Int) {
    let place = place(ofDevice: device)
    shown[Int(place)] = nil
    makeDue(place)
  }

  /// Makes every topic that was published due again: on a new connection the broker may have lost
  /// everything.
  mutating func forgetPublished() {
    for place in shown.indices where shown[place] != nil {
      shown[place] = nil
      _ = queue.cancel(KeyIndex(Int32(place)))  // A change that waits is shown at once too.
      makeDue(Int32(place))
    }
  }

  /// Another gateway shows the topics of a device from now on.
  mutating func forgetShown(_ keys: some Sequence<KeyIndex>, ofDevice device: Int) {
    for key in keys where targetPlaces[key] >= 0 { shown[Int(targetPlaces[key])] = nil }
    guard devicePlaces[device] >= 0 else { return }
    for place in devicePlaces[device]...devicePlaces[device] + 1 { shown[Int(place)] = nil }
  }

  private mutating func makeDue(_ place: Int32) {
    guard !isDue[Int(place)] else { return }
    isDue[Int(place)] = true
    due.append(place)
  }

  /// The topic that has been due longest, to be shown now, in constant time on average; one that
  /// finds no room is given back with ``putBack(_:)``.
  mutating func nextDue(at now: Moment) -> Int32? {
    guard let place = due.popFirst() else { return nil }
    isDue[Int(place)] = false
    pace.shown(at: now)
    readyAt[Int(place)] = Moment(nanoseconds: now.nanoseconds &+ pace.rest)
    return place
  }

  package mutating func putBack(_ place: Int32) {
    shown[Int(place)] = nil
    makeDue(place)
  }

  func item(at place: Int32) -> Item { items[Int(place)] }

  /// Records what a topic shows now; `false` when it showed the same already.
  mutating func record(_ payload: [UInt8], at place: Int32) -> Bool {
    let digest = Self.digest(payload)
    guard shown[Int(place)] != digest else { return false }
    shown[Int(place)] = digest
    // A target that was never shown needs no clearing.
    guard !payload.isEmpty || mayBeKept[Int(place)] else { return false }
    mayBeKept[Int(place)] = true
    return true
  }

  private static func digest(_ payload: [UInt8]) -> Int {
    var hasher = Hasher()
    unsafe payload.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    return hasher.finalize()
  }
}

/// The payloads of the gateway's retained topics.
extension StatePublisher.Item {
  /// What the topic shows; empty where there is nothing to show, which clears it at the broker.
  func payload(of commands: borrowing CommandStateMachine, at now: Moment) -> [UInt8] {
    var output: [UInt8] = []
    switch self {
    case .target(let key): commands.log.statuses.target(of: key)?.appendBare(to: &output)
    case .targets(let device): Self.appendTargets(of: commands, ofDevice: device, to: &output)
    case .info(let device): Self.appendInfo(of: commands, ofDevice: device, at: now, to: &output)
    }
    return output
  }

  private static func appendTargets(
    of commands: borrowing CommandStateMachine,
    ofDevice device: Int,
    to output: inout [UInt8]
  ) {
    let registry = commands.registry
    let keys = registry.indices(ofDevice: device)
    guard !keys.isEmpty else { return }  // The device was removed.
    var separator = UInt8(ascii: "{")
    for raw in keys {
      guard let target = commands.log.statuses.target(of: KeyIndex(raw)) else {
        continue
      }
      output.append(separator)
      separator = UInt8(ascii: ",")
      JSONWriter.appendString(registry.definition(of: KeyIndex(raw)).property.id, to: &output)
      output.append(UInt8(ascii: ":"))
      JSONWriter.append(target.json, to: &output)
    }
    if output.isEmpty { output.append(separator) }
    output.append(UInt8(ascii: "}"))
  }

  private static func appendInfo(
    of commands: borrowing CommandStateMachine,
    ofDevice device: Int,
    at now: Moment,
    to output: inout [UInt8]
  ) {
    let registry = commands.registry
    let keys = registry.indices(ofDevice: device)
    guard !keys.isEmpty else { return }
    var separator = UInt8(ascii: "{")
    for raw in keys {
      let status = commands.status(KeyIndex(raw))
      output.append(separator)
      separator = UInt8(ascii: ",")
      JSONWriter.appendString(registry.definition(of: KeyIndex(raw)).property.id, to: &output)
      output.append(contentsOf: #":{"target":"#.utf8)
      JSONWriter.append(status.target?.json ?? .null, to: &output)
      output.append(contentsOf: #","actual":"#.utf8)
      JSONWriter.append(status.actual?.json ?? .null, to: &output)
      output.append(contentsOf: #","phase":"#.utf8)
      JSONWriter.append(status.phase.map { .string($0.rawValue) } ?? .null, to: &output)
      output.append(contentsOf: #","age_ms":"#.utf8)
      if let since = status.since {
        let age = Int64(bitPattern: now.nanoseconds &- since.nanoseconds) / 1_000_000
        JSONWriter.appendInteger(age, to: &output)
      } else {
        output.append(contentsOf: "null".utf8)
      }
      let waiting = commands.sendQueue.commandCount(KeyIndex(raw))
      if waiting > 1 {
        output.append(contentsOf: #","waiting":"#.utf8)
        JSONWriter.appendInteger(Int64(waiting), to: &output)
      }
      output.append(UInt8(ascii: "}"))
    }
    output.append(UInt8(ascii: "}"))
  }
}

/// How long a topic of the echo rests after it was shown.
///
/// 100 ms, as long as few topics move. Three topics move with each key, so a flood on a thousand
/// keys would be answered with 30,000 retained messages a second: the gateway would be the flood
/// that it is there to end. Where more than ``budget`` topics move at once, each rests for longer,
/// so that there are no more than 5,000 a second in all, one second at most.
///
/// Cost: constant.
struct StatePace {
  /// The rest where few topics move, in nanoseconds, and the longest.
  static let usual: UInt64 = 100_000_000
  static let longest: UInt64 = 1_000_000_000
  /// How many topics may be shown in each ``usual`` rest.
  static let budget: UInt64 = 500

  /// The rest of a topic that is shown now, in nanoseconds.
  private(set) var rest = usual
  private var count: UInt64 = 0
  private var since = Moment.zero

  /// A topic is shown at `now`.
  mutating func shown(at now: Moment) {
    count += 1
    let elapsed = now.nanoseconds &- since.nanoseconds
    guard elapsed >= Self.usual else { return }
    // Each topic that moves is shown once in a rest; so many move as are shown in one.
    let perRest = Double(count) * Double(rest) / Double(elapsed)
    let needed = UInt64(perRest / Double(Self.budget) * Double(Self.usual))
    rest = min(max(needed, Self.usual), Self.longest)
    count = 0
    since = now
  }
}

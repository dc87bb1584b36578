// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
package import LastOut
import Routing

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

  /// Records which topics show something else since the last call; those of devices `elsewhere` are not
  /// this gateway's.
  ///
  /// - Returns: The keys that changed, possibly more than once each.
  mutating func collectChanges(
    of commands: inout CommandStateMachine,
    apartFrom elsewhere: DevicesElsewhere = DevicesElsewhere(),
    at now: Moment
  ) -> [KeyIndex] {
    guard !commands.dispatcher.log.statuses.changedKeys.isEmpty else { return [] }
    let keys = commands.dispatcher.log.statuses.changedKeys
    commands.dispatcher.log.statuses.changedKeys.removeAll(keepingCapacity: true)
    let registry = commands.registry
    for key in keys {
      let device = registry.device(of: key)
      if elsewhere.contains(device) { continue }
      if commands.dispatcher.log.statuses.takeNewTarget(of: key) {
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

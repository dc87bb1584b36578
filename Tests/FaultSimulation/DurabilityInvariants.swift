// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Values

/// The durability of accepted values over all restarts, and what a crash must not do to them.
///
/// It does not know the journal: only which values were accepted, emitted, sent and ended, and what
/// a start would find on the disk.
struct DurabilityInvariants {
  private struct Known {
    var survivor: Survivor
    /// Whether `accepted` was emitted as durable.
    var isPromised = false
    /// Whether it is neither sent nor ended.
    var isOpen = true
    /// The newer value of its key that replaced it.
    var successor: UInt64?
    /// The newest durable value that this one replaced.
    var inherited: UInt64 = 0
    /// Whether a crash must not send it any more: the next commit removes its row.
    var isRevoked = false
    /// Whether a restart found it and has not decided about it.
    var isFound = false
    /// Whether it was sent before the disk was known to have nothing older, because it is urgent or
    /// the file could not be read: a crash may send an older one.
    var isExempt = false
  }

  /// A momentary command, which has no row of its own.
  private struct Action {
    var key: KeyIndex
    var order: UInt64
    var isUrgent: Bool
  }

  /// An urgent command that waits to be sent.
  private struct Waiting {
    var key: KeyIndex
    /// Since when an urgent command of its key waits, including replaced ones.
    var since: Moment
    /// Whether the disk does not delay it.
    var isFree = false
  }

  /// How long an urgent command waits for the disk.
  static let patience = Duration.milliseconds(250)

  /// Every value that may still be sent or found, by its order.
  private var known: [UInt64: Known] = [:]
  /// The newest value of each key that was sent; restarts included.
  private var newestSent: [UInt64]
  /// The oldest value that the current restart must still replay, by key.
  private var owed: [KeyIndex: UInt64] = [:]
  /// The events of each command that are not emitted yet.
  private var unemitted: [UInt64: [Phase]] = [:]
  /// The order of each command's number, since the start of the gateway.
  private var orders: [UInt64: UInt64] = [:]
  /// Commands that were refused after they were accepted.
  private var refused: Set<UInt64> = []
  /// Keys that were replayed since the start of the gateway.
  private var replayed: Set<KeyIndex> = []

  /// The keys whose values a value of each key ends: when urgent, and always.
  private var ends: [[KeyIndex]] = []
  private var excludes: [[KeyIndex]] = []
  /// The keys whose urgent values end a value of each key.
  private var endedBy: [[KeyIndex]] = []
  /// Urgent actions and their orders, by number; an action has no row of its own.
  private var actions: [UInt64: Action] = [:]
  /// Urgent commands that wait to be sent, by number.
  private var waiting: [UInt64: Waiting] = [:]
  private var wasDiskFailing = false
  /// Whether the file could not be read since the start: it may hold older values than those that
  /// are sent meanwhile, and a crash may send them.
  private var isUnread = false
  /// The newest command that was sent and ends values of the key.
  private var newestEnding: [UInt64]
  /// The newest command that was sent and that an urgent value of the key would end.
  private var newestEndable: [UInt64]

  init(_ registry: Registry) {
    newestSent = Array(repeating: 0, count: registry.properties.count)
    newestEnding = newestSent
    newestEndable = newestSent
    for (place, entry) in registry.properties.enumerated() {
      var ended: [KeyIndex] = []
      var excluded: [KeyIndex] = []
      var endings: [KeyIndex] = []
      for (number, other) in registry.properties.enumerated()
      where other.device == entry.device && number != place {
        let key = KeyIndex(Int32(number))
        if entry.property.ends.contains(other.property.id) { ended.append(key) }
        if other.property.ends.contains(entry.property.id) { endings.append(key) }
        if entry.property.excludes.contains(other.property.id)
          || other.property.excludes.contains(entry.property.id)
        {
          excluded.append(key)
        }
      }
      ends.append(ended)
      excludes.append(excluded)
      endedBy.append(endings)
    }
  }

  /// The events that were never emitted, or values that were never replayed, if any.
  var unfinished: String? {
    if let number = unemitted.keys.min() { return "the events of #\(number) were never told" }
    return owed.keys.min { $0.rawValue < $1.rawValue }.map {
      "a promised value of key \($0.rawValue) never came back"
    }
  }

  // MARK: - Events

  /// Records an accepted value.
  mutating func accepted(
    _ survivor: Survivor,
    as number: UInt64,
    at now: Moment
  ) {
    orders[number] = survivor.order
    if survivor.isUrgent { waits(survivor.key, number, at: now) }
    known[survivor.order] = Known(survivor: survivor)
    // It replaces a value that must still be replayed, and inherits its durability.
    known[survivor.order]?.inherited = owed.removeValue(forKey: survivor.key) ?? 0
    for (order, value) in known where value.isFound && value.survivor.key == survivor.key {
      known[order]?.isFound = false
    }
    endStored(by: survivor.key, isUrgent: survivor.isUrgent)
  }

  /// A command ends values of other keys that a restart found and has not replayed yet: those that
  /// it ends, and the urgent ones that would end it.
  private mutating func endStored(by key: KeyIndex, isUrgent: Bool) {
    let ended = endedKeys(by: key, isUrgent: isUrgent)
    for (order, value) in known
    where value.isFound && ended.contains(value.survivor.key)
      || value.isFound && value.survivor.isUrgent
        && endedBy[Int(key.rawValue)].contains(value.survivor.key)
    {
      owed[value.survivor.key] = nil
      known[order]?.isFound = false
      known[order]?.isRevoked = true
    }
    for other in ended { owed[other] = nil }
  }

  /// Records an accepted action, which ends values of other keys and has no row.
  mutating func acceptedAction(
    _ key: KeyIndex,
    isUrgent: Bool,
    order: UInt64,
    as number: UInt64,
    at now: Moment
  ) {
    actions[number] = Action(key: key, order: order, isUrgent: isUrgent)
    if isUrgent { waits(key, number, at: now) }
    endStored(by: key, isUrgent: isUrgent)
  }

  /// Repeating an urgent command that waits for the disk must not postpone it.
  private mutating func waits(_ key: KeyIndex, _ number: UInt64, at now: Moment) {
    let others = waiting.values.filter { $0.key == key && !$0.isFree }
    waiting[number] = Waiting(key: key, since: others.map(\.since).min() ?? now)
  }

  /// Records the keys that the gateway withholds now; other keys do not wait for the disk.
  mutating func withheld(_ keys: Set<KeyIndex>, isDiskFailing: Bool, at now: Moment) {
    // Nothing waits for a failing disk; after its recovery commands wait again.
    if wasDiskFailing {
      for (number, command) in waiting where !command.isFree { waiting[number]?.since = now }
    }
    wasDiskFailing = isDiskFailing
    if isDiskFailing { return }
    for (number, command) in waiting where !keys.contains(command.key) {
      waiting[number]?.isFree = true
    }
  }

  /// Whether an urgent command has waited for the disk for as long as it may, or need not.
  func isDue(_ number: UInt64, at now: Moment) -> Bool {
    waiting[number].map { $0.isFree || $0.since.duration(to: now) >= Self.patience } ?? false
  }

  /// The order of a command among all accepted ones, restarts included; `nil` for an action.
  func order(of number: UInt64) -> UInt64? { orders[number] }

  /// Records that a value of an earlier process is a command of this one.
  mutating func resumed(_ survivor: Survivor, as number: UInt64, at now: Moment) {
    orders[number] = survivor.order
    if survivor.isUrgent { waits(survivor.key, number, at: now) }
  }

  /// Records a decided event before it is emitted; `given`: a newer value of its key replaced it.
  mutating func decided(
    _ phase: Phase,
    number: UInt64,
    isReplaced: Bool,
    isHeard: Bool
  ) {
    guard !refused.contains(number) else { return }
    if isHeard { unemitted[number, default: []].append(phase) }
    if phase != .accepted, phase != .sending { waiting[number] = nil }
    guard let order = orders[number] else { return }
    switch phase {
    case .accepted, .sending: break
    case .rejected, .sent, .confirmed, .unchanged, .superseded, .cancelled, .failed, .expired:
      let endings: [Phase] = [.rejected, .superseded, .cancelled, .failed, .expired]
      close(order, given: isReplaced, isRevoked: endings.contains(phase))
    }
  }

  private mutating func close(_ order: UInt64, given: Bool, isRevoked: Bool) {
    guard var value = known[order], value.isOpen else { return }
    value.isOpen = false
    value.isRevoked = isRevoked
    if given { value.successor = newest(after: value.survivor) }
    known[order] = value
    passDurability(value)
  }

  /// The newest value of the key that is neither sent nor ended.
  private func newest(after survivor: Survivor) -> UInt64? {
    var newest: UInt64?
    for (order, value) in known
    where value.isOpen && value.survivor.key == survivor.key && order > survivor.order {
      newest = max(newest ?? order, order)
    }
    return newest
  }

  /// The durability of a replaced value passes to its replacement.
  private mutating func passDurability(_ value: Known) {
    let order = value.isPromised ? value.survivor.order : value.inherited
    guard order > 0, let successor = value.successor, let newer = known[successor] else { return }
    known[successor]?.inherited = max(newer.inherited, order)
    if let newer = known[successor], !newer.isOpen { passDurability(newer) }
  }

  /// Records an emitted event; returns the violated invariant, if any.
  mutating func emitted(_ phase: Phase, number: UInt64, isDurable: Bool) -> String? {
    if phase == .rejected, unemitted[number]?.first == .accepted {
      // Accepted and then refused: no event was emitted.
      unemitted[number] = nil
      refused.insert(number)
      if let order = orders[number] { close(order, given: false, isRevoked: true) }
      return nil
    }
    guard !refused.contains(number) else { return "#\(number) was refused, and told \(phase)" }
    guard let next = unemitted[number]?.first, next == phase else {
      return "#\(number) was told \(phase) before its turn"
    }
    unemitted[number]?.removeFirst()
    if unemitted[number]?.isEmpty == true { unemitted[number] = nil }
    if phase == .accepted, isDurable, let order = orders[number] {
      known[order]?.isPromised = true
      if let value = known[order], !value.isOpen { passDurability(value) }
    }
    return nil
  }

  /// Whether an older value may follow after a crash: it did not wait for the disk.
  func isExempt(_ number: UInt64) -> Bool {
    orders[number].flatMap { known[$0]?.isExempt } ?? false
  }

  /// Records a command that was sent to the broker; returns the violated invariant, if any.
  ///
  /// `isDiskFailing`: then an urgent command does not wait.
  mutating func left(number: UInt64, isDiskFailing: Bool, at now: Moment) -> String? {
    let wait = waiting[number].flatMap { $0.isFree ? nil : $0.since.duration(to: now) } ?? .zero
    let hasWaited = isDiskFailing || wait >= Self.patience
    waiting[number] = nil
    if let action = actions.removeValue(forKey: number) {
      if isUnread || action.isUrgent && hasWaited { return nil }
      hasLeft(action.key, isUrgent: action.isUrgent, order: action.order)
      return nil
    }
    guard let order = orders[number], let value = known[order] else { return nil }
    let place = Int(value.survivor.key.rawValue)
    guard order >= newestSent[place] else {
      return "#\(number) leaves after something newer, which was accepted before a restart"
    }
    guard order >= newestEnding[place] else {
      return "#\(number) leaves after a command that ended it"
    }
    if isUnread || value.survivor.isUrgent && hasWaited { known[order]?.isExempt = true }
    if known[order]?.isExempt == false {
      newestSent[place] = order
      hasLeft(value.survivor.key, isUrgent: value.survivor.isUrgent, order: order)
    }
    return nil
  }

  /// A command was sent, which nothing older may follow of the keys that it ends and of those whose
  /// urgent values end it.
  private mutating func hasLeft(_ key: KeyIndex, isUrgent: Bool, order: UInt64) {
    for other in endedKeys(by: key, isUrgent: isUrgent) {
      newestEnding[Int(other.rawValue)] = max(newestEnding[Int(other.rawValue)], order)
    }
    for other in endedBy[Int(key.rawValue)] {
      newestEndable[Int(other.rawValue)] = max(newestEndable[Int(other.rawValue)], order)
    }
  }

  private func endedKeys(by key: KeyIndex, isUrgent: Bool) -> [KeyIndex] {
    (isUrgent ? ends[Int(key.rawValue)] : []) + excludes[Int(key.rawValue)]
  }

  /// Whether somebody waits to be told that a command was accepted.
  func isUntold(_ number: UInt64) -> Bool { unemitted[number]?.first == .accepted }

  /// Records that an urgent command comes back under another number: what replaced it was rejected,
  /// before anybody was told that it was replaced.
  mutating func restored(_ number: UInt64, as newNumber: UInt64, at now: Moment) -> Survivor? {
    if unemitted[number]?.last == .superseded { unemitted[number]?.removeLast() }
    if unemitted[number]?.isEmpty == true { unemitted[number] = nil }
    guard let order = orders[number], let value = known[order] else { return nil }
    known[order]?.isOpen = true
    known[order]?.isRevoked = false
    known[order]?.successor = nil
    orders[newNumber] = order
    waits(value.survivor.key, newNumber, at: now)
    return value.survivor
  }

  // MARK: - Crashes

  /// The oldest value of a key that a start must find; 0 for none.
  private func due(_ place: Int) -> UInt64 {
    var due = owed[KeyIndex(Int32(place))] ?? 0
    for value in known.values where Int(value.survivor.key.rawValue) == place && value.isOpen {
      due = max(due, value.isPromised ? value.survivor.order : value.inherited)
    }
    return due
  }

  /// Checks what a start would find; returns the violated invariant, if any.
  ///
  /// `isPrompt`: the next commit follows without delay. `isIdle`: no commit is pending.
  func broken(
    by image: [Survivor],
    isPrompt: Bool,
    isIdle: Bool,
    at now: Moment
  ) -> String? {
    for place in newestSent.indices {
      let key = KeyIndex(Int32(place))
      let row = image.first { $0.key == key }
      let due = due(place)
      if due > (row?.order ?? 0) {
        let found = row.map { "value \($0.order)" } ?? "nothing"
        return "a crash would lose value \(due) of key \(place), the disk has \(found)"
      }
      guard let row else { continue }
      guard let value = known[row.order], value.survivor.value == row.value else {
        return "the disk has a value of key \(place) that nobody set"
      }
      let isLive = now.advanced(by: .milliseconds(2)) < value.survivor.expiresAt
      if isLive, row.order < newestSent[place] {
        return "a crash would send value \(row.order) of key \(place) after \(newestSent[place])"
      }
      if isLive, row.order < newestEnding[place] {
        return "a crash would send value \(row.order) of key \(place) after the command "
          + "\(newestEnding[place]) that ended it"
      }
      if isLive, value.survivor.isUrgent, row.order < newestEndable[place] {
        return "a crash would send the urgent value \(row.order) of key \(place) after "
          + "\(newestEndable[place]), which it would end"
      }
      guard !value.isOpen, !value.isFound else { continue }
      if isIdle { return "value \(row.order) of key \(place) would stay on the disk for ever" }
      if value.isRevoked, !isPrompt {
        return "value \(row.order) of key \(place) has ended, and its row waits"
      }
    }
    return nil
  }

  // MARK: - A restart

  /// Records that the file was read after all.
  mutating func opened() { isUnread = false }

  /// Records the end of the gateway, and the values that must be replayed.
  ///
  /// `isUnread`: the new process cannot read the file at first.
  mutating func restart(found: [Survivor], isUnread: Bool) {
    self.isUnread = isUnread
    for place in newestSent.indices {
      let due = due(place)
      owed[KeyIndex(Int32(place))] = due > 0 ? due : nil
    }
    let kept = Set(found.map(\.order))
    known = known.filter { kept.contains($0.key) }
    for order in known.keys {
      known[order]?.isOpen = false
      known[order]?.isRevoked = false
      known[order]?.inherited = 0
      known[order]?.successor = nil
      known[order]?.isFound = true
    }
    unemitted = [:]
    orders = [:]
    actions = [:]
    waiting = [:]
    refused = []
    replayed = []
  }

  /// Records a replayed value of an earlier process; returns the violated invariant, if any.
  mutating func resumes(_ survivor: Survivor, at now: Moment) -> String? {
    let place = Int(survivor.key.rawValue)
    guard let original = known[survivor.order]?.survivor, original.value == survivor.value else {
      return "something comes back that nobody set"
    }
    guard known[survivor.order]?.isFound == true else {
      return "value \(survivor.order) of key \(place) comes back, and something newer ended it"
    }
    guard replayed.insert(survivor.key).inserted else { return "two values of a key come back" }
    guard survivor.order >= newestSent[place] else {
      return "value \(survivor.order) of key \(place) comes back after \(newestSent[place])"
    }
    guard survivor.expiresAt <= original.expiresAt.advanced(by: .milliseconds(2)) else {
      return "value \(survivor.order) of key \(place) got a longer time to live"
    }
    let hasNewer = known.values.contains {
      $0.survivor.key == survivor.key && $0.survivor.order > survivor.order
    }
    if hasNewer { return "value \(survivor.order) of key \(place) comes back after a newer one" }
    return settle(survivor, isOpen: true)
  }

  /// Records an expired value of an earlier process; `sleep`: how long the machine may have slept.
  mutating func expired(_ survivor: Survivor, sleep: Duration, isTimeKnown: Bool, at now: Moment)
    -> String?
  {
    guard let original = known[survivor.order]?.survivor else {
      return "something expired that nobody set"
    }
    let latest = now.advanced(by: sleep + .milliseconds(2))
    guard original.expiresAt <= latest || !isTimeKnown else {
      return "value \(survivor.order) of key \(survivor.key.rawValue) expired before its time"
    }
    return settle(survivor, isOpen: false)
  }

  private mutating func settle(_ survivor: Survivor, isOpen: Bool) -> String? {
    let due = owed.removeValue(forKey: survivor.key) ?? 0
    guard survivor.order >= due else {
      return "value \(survivor.order) came back instead of value \(due)"
    }
    known[survivor.order]?.isFound = false
    known[survivor.order]?.isOpen = isOpen
    known[survivor.order]?.isPromised = isOpen
    return nil
  }

  /// Removes values that can neither be found nor sent any more.
  ///
  /// `images`: what a start could find now, or once the commit in progress is written.
  mutating func forget(except images: [[Survivor]]) {
    guard known.count > 200 else { return }
    let found = Set(images.flatMap { $0 }.map(\.order))
    let numbered = Set(unemitted.keys.compactMap { orders[$0] })
    known = known.filter {
      $0.value.isOpen || found.contains($0.key) || numbered.contains($0.key)
    }
    orders = orders.filter { known[$0.value] != nil || unemitted[$0.key] != nil }
  }
}

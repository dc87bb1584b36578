// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
package import LastOut
import Values

/// The deliveries of all keys, with what they share: publishes, deadlines, and whether a device
/// responds.
///
/// It decides when a key is at rest, when the confirmation of a command is overdue, and what
/// follows: another attempt, unless something newer waits or the device has not responded before.
struct DeliveryTable {
  private var deliveries: LazyArray<Delivery>
  /// Which message carries the commands of which keys.
  var publishes = PublishTable()
  /// When confirmations are overdue, and when keys are at rest that await none.
  private(set) var deadlines: KeyDeadlines
  /// Whether a device may be given another attempt: it has reported since a command to it failed.
  private var isResponsive: [Bool]
  private(set) var unreadable = UnreadableReports()

  init(keys: Int, devices: Int) {
    deliveries = LazyArray(repeating: Delivery(), count: keys)
    deadlines = KeyDeadlines(keys: keys)
    isResponsive = Array(repeating: true, count: devices)
  }

  /// Makes room for more keys and devices.
  mutating func extend(keys: Int, devices: Int) {
    deliveries.extend(to: keys)
    deadlines.extend(keys: keys)
    while isResponsive.count < devices { isResponsive.append(true) }
  }

  subscript(key: KeyIndex) -> Delivery { deliveries[key] }

  /// Changes the delivery of a key; a confirmation's deadline goes with its command.
  mutating func update<Result>(
    _ key: KeyIndex,
    _ change: (inout Delivery) -> Result
  ) -> Result {
    let result = change(&deliveries[key])
    if !deliveries[key].awaitsConfirmation { setRest(of: key) }
    return result
  }

  private mutating func setRest(of key: KeyIndex) {
    if let moment = deliveries[key].restsAt {
      if deadlines[key] != moment { deadlines.set(key, at: moment) }
    } else {
      deadlines.remove(key)
    }
  }

  // MARK: - The broker

  /// The broker acknowledged the command of `key`.
  ///
  /// `confirmation` is how the device confirms it; `nil` where it does not.
  mutating func acknowledge(
    _ key: KeyIndex,
    confirmation: Confirmation?,
    isAction: Bool,
    at now: Moment
  ) -> Delivery.Verdict {
    let verdict = update(key) {
      $0.acknowledge(confirms: confirmation != nil, isAction: isAction, at: now)
    }
    if let confirmation, let flight = deliveries[key].inFlight {
      deadlines.set(
        key,
        at: now.advanced(by: Self.patience(confirmation, flight))
      )
    }
    return verdict
  }

  // MARK: - The device

  /// When the first confirmation is overdue, or the first key at rest.
  @inline(__always)
  var nextOverdue: Moment? { deadlines.first }

  /// A key whose confirmation is overdue, or that is at rest, once.
  mutating func popOverdue(at now: Moment) -> KeyIndex? { deadlines.popFirst(at: now) }

  /// Records that a device reported or replied.
  mutating func deviceResponded(_ device: Int) { isResponsive[device] = true }

  /// Records a report that cannot be read.
  ///
  /// - Returns: Whether it is the first of the key that is remembered.
  mutating func reportUnreadable(_ key: KeyIndex, _ report: JSONValue) -> Bool {
    deliveries[key].reportWithoutValue(isReadable: false)
    return unreadable.record(report, of: key)
  }

  /// Forgets which reports of a key could not be read, and unless `keepsHeard` that there were any.
  mutating func forgetReception(of key: KeyIndex, keepsHeard: Bool) {
    deliveries[key].forgetReception(keepsHeard: keepsHeard)
    unreadable.remove(key)
  }

  /// Decides what becomes of a command whose confirmation is overdue.
  ///
  /// `hasNewer` states whether something newer of the key waits, `mayRetry` whether there are
  /// attempts after the first at all.
  mutating func timeOut(
    _ key: KeyIndex,
    of device: Int,
    _ confirmation: Confirmation,
    hasNewer: Bool,
    mayRetry: Bool
  ) -> Delivery.Verdict {
    guard let flight = deliveries[key].inFlight else { return .none }
    deliveries[key].miss()
    guard mayRetry, isResponsive[device], !flight.isOvertaken, !flight.command.change.rides,
      flight.command.retries < confirmation.retries + (flight.isCarried ? 1 : 0)
    else {
      isResponsive[device] = false
      let within = DurationText.text(Self.patience(confirmation, flight))
      let reason = "not confirmed within \(within)\(remark(on: key))"
      return update(key) { $0.fail(reason) }
    }
    return update(key) { hasNewer ? $0.supersede() : $0.retry(unconfirmed: true) }
  }

  /// How long the attempt in flight waits for the device's report.
  private static func patience(_ confirmation: Confirmation, _ flight: InFlightCommand) -> Duration
  {
    confirmation.patience(afterRetries: flight.command.retries) + flight.transitionTime
  }

  /// What the newest report has to do with a command that was not confirmed, if it cannot be read.
  private func remark(on key: KeyIndex) -> String {
    guard deliveries[key].reception == .unreadable else { return "" }
    let excerpt = unreadable[key].map { ": \($0.excerpt)" } ?? ""
    return "; the last report cannot be read\(excerpt)"
  }
}

/// The reports that could not be read: how many each key had, and what the newest says.
///
/// Only keys that had one take memory, and at most ``limit`` keys do; those of others are counted
/// together.
package struct UnreadableReports: Sendable {
  /// The reports of one key.
  package struct Record: Hashable, Sendable {
    package fileprivate(set) var count: UInt64
    /// The newest, shortened and without control characters.
    package fileprivate(set) var excerpt: String
  }

  static let limit = 4096

  /// How many there were of all keys.
  package private(set) var total: UInt64 = 0
  private var records: [KeyIndex: Record] = [:]

  /// The keys that had any, in order.
  package var keys: [KeyIndex] { records.keys.sorted { $0.rawValue < $1.rawValue } }

  package subscript(key: KeyIndex) -> Record? { records[key] }

  /// Records a report; returns whether it is the first of its key, where the key has a record.
  mutating func record(_ report: JSONValue, of key: KeyIndex) -> Bool {
    total += 1
    let known = records[key]
    guard known != nil || records.count < Self.limit else { return false }
    records[key] = Record(count: (known?.count ?? 0) + 1, excerpt: Excerpt.of(report))
    return known == nil
  }

  /// Removes the record of a key.
  mutating func remove(_ key: KeyIndex) {
    if !records.isEmpty { records[key] = nil }
  }
}

/// The publishes that await the broker's acknowledgement, by token.
///
/// One publish may carry the commands of several keys. A place in the table is reused with another
/// generation, so that a late answer to an earlier publish is recognised.
struct PublishTable {
  private struct Publish {
    var generation: UInt32 = 0
    /// Empty while the place is free.
    var keys: [KeyIndex] = []
  }

  private var publishes: [Publish] = []
  private var free: [Int] = []
  private let firstGeneration: UInt32

  /// - Parameter firstGeneration: What the generations of each place count from.
  init(firstGeneration: UInt32 = 0) { self.firstGeneration = firstGeneration }

  /// Records a publish and returns its token.
  mutating func insert(_ keys: [KeyIndex]) -> UInt64 {
    let place: Int
    if let reused = free.popLast() {
      place = reused
    } else {
      place = publishes.count
      publishes.append(Publish(generation: firstGeneration))
    }
    publishes[place].generation &+= 1
    publishes[place].keys = keys
    return UInt64(publishes[place].generation) << 32 | UInt64(place)
  }

  /// Removes the publish with this token and returns its keys; none for a token that was removed.
  mutating func remove(_ token: UInt64) -> [KeyIndex] {
    let place = Int(token & 0xFFFF_FFFF)
    guard place < publishes.count, publishes[place].generation == UInt32(token >> 32) else {
      return []
    }
    let keys = publishes[place].keys
    guard !keys.isEmpty else { return [] }
    publishes[place].keys = []
    free.append(place)
    return keys
  }
}

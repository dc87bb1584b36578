// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Values

/// The deliveries of all keys, with what they share: publishes, deadlines, and whether a device
/// responds.
///
/// It decides when a key is at rest, when the confirmation of a command is overdue, and what
/// follows: another attempt, unless something newer waits or the device has not responded before.
struct DeliveryTable {
  private var deliveries: LazyArray<Delivery>
  private var publishes = PublishTable()
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

  /// Records that one message carries the commands of these keys.
  ///
  /// - Returns: The token that names the message in ``finish(_:)``.
  mutating func publish(_ keys: [KeyIndex]) -> UInt64 { publishes.insert(keys) }

  /// The keys of the message with this token, once.
  mutating func finish(_ token: UInt64) -> [KeyIndex] { publishes.remove(token) }

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
        at: now.advanced(by: confirmation.within + flight.transitionTime)
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
      flight.command.retries < confirmation.retries
    else {
      isResponsive[device] = false
      let within = confirmation.within + flight.transitionTime
      let reason = "not confirmed within \(DurationText.text(within))\(remark(on: key))"
      return update(key) { $0.fail(reason) }
    }
    return update(key) { hasNewer ? $0.supersede() : $0.retry(unconfirmed: true) }
  }

  /// What the newest report has to do with a command that was not confirmed, if it cannot be read.
  private func remark(on key: KeyIndex) -> String {
    guard deliveries[key].reception == .unreadable else { return "" }
    let excerpt = unreadable[key].map { ": \($0.excerpt)" } ?? ""
    return "; the last report cannot be read\(excerpt)"
  }
}

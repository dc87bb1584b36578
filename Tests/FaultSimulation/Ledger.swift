// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Values

/// The ledger of all commands: their events, and which events or publishes must never follow.
///
/// It does not know queues or lanes, only a command's phases and the invariants under fault.
struct Ledger {
  private struct Command {
    var phase: Phase
    /// The number of the accepted change, restarts included.
    var order: UInt64
    var place: Int
    var expiresAt: Moment
  }

  private var open: [UInt64: Command] = [:]
  /// Callers that wait for a final event.
  private var owed: [UInt64: Duration?] = [:]
  /// The newest sent value of each key; restarts included.
  private var newestSent: [UInt64]
  /// The newest number of each key since the start of the gateway.
  private var newestNumber: [UInt64]
  private var lastShown: [JSONValue?]
  /// What each device has shown since a command was sent to it that is no repetition.
  private var shownSince: [[JSONValue]]
  /// Whether it records every command; without a subscriber, it never hears of those without a
  /// caller.
  private let isComplete: Bool

  init(keys: Int, isComplete: Bool) {
    self.isComplete = isComplete
    newestSent = Array(repeating: 0, count: keys)
    newestNumber = Array(repeating: 0, count: keys)
    lastShown = Array(repeating: nil, count: keys)
    shownSince = Array(repeating: [], count: keys)
  }

  /// Until when an open command may wait for an offline broker or device.
  func expiry(of number: UInt64) -> Moment? { open[number]?.expiresAt }

  /// Whether no command has this number.
  func isUnknown(_ number: UInt64) -> Bool { open[number] == nil }

  /// The command or caller without a final event, if any.
  var unfinished: String? {
    if let caller = owed.keys.min() { return "caller \(caller) never got its final event" }
    return open.keys.min().map { "command #\($0) has no end" }
  }

  /// Records a caller whose change was accepted; `ttl` overrides the property's.
  mutating func expectsFinal(_ caller: UInt64, ttl: Duration?) { owed[caller] = .some(ttl) }

  mutating func shown(_ key: KeyIndex, _ wire: JSONValue) {
    let place = Int(key.rawValue)
    lastShown[place] = wire
    if !shownSince[place].contains(wire) { shownSince[place].append(wire) }
  }

  /// Records a restart of the gateway, which forgets all requests.
  mutating func restart() {
    open = [:]
    owed = [:]
    for place in newestNumber.indices {
      newestNumber[place] = 0
      lastShown[place] = nil
      shownSince[place] = []
    }
  }

  /// Records that a value of an earlier process continues as a command of this one.
  mutating func resumed(_ survivor: Survivor, as number: UInt64) {
    open[number] = Command(
      phase: .accepted,
      order: survivor.order,
      place: Int(survivor.key.rawValue),
      expiresAt: survivor.expiresAt
    )
    newestNumber[Int(survivor.key.rawValue)] = number
  }

  /// Records a sent command.
  mutating func left(_ number: UInt64) {
    guard let command = open[number] else { return }
    newestSent[command.place] = command.order
  }

  /// Records one event; returns the violated invariant, if any.
  ///
  /// `order` counts accepted values, restarts included.
  mutating func record(
    _ event: CommandEvent,
    of property: Property,
    order: UInt64,
    isOnline: Bool
  ) -> String? {
    let caller = event.origin?.replyTo ?? 0
    let ttl = caller == 0 ? nil : owed[caller] ?? nil
    if event.isFinal, caller != 0, owed.removeValue(forKey: caller) == nil {
      return "caller \(caller) got a second final event"
    }
    let place = Int(event.key.rawValue)
    switch event.phase {
    case .accepted:
      let expiresAt = event.at.advanced(by: ttl ?? property.ttl)
      let command = Command(
        phase: .accepted,
        order: order,
        place: place,
        expiresAt: expiresAt
      )
      guard open.updateValue(command, forKey: event.number) == nil else { return "accepted twice" }
      newestNumber[place] = event.number
      return nil
    case .rejected:
      open[event.number] = nil
      return nil
    case .sending: return recordSending(event, place)
    case .sent:
      guard open[event.number]?.phase == .sending else { return "sent, but was not in flight" }
      open[event.number]?.phase = .sent
      if event.isFinal { open[event.number] = nil }
      return nil
    case .unchanged, .cancelled, .superseded, .confirmed, .failed, .expired:
      guard let command = open.removeValue(forKey: event.number) else {
        return event.value == nil ? nil : "ended a second time"
      }
      return wrongEnd(event, command, of: property, isOnline: isOnline)
    }
  }

  private mutating func recordSending(_ event: CommandEvent, _ place: Int) -> String? {
    guard let command = open[event.number] else { return "is sent although it has ended" }
    guard command.order >= newestSent[place] else { return "is sent after something newer" }
    // Newer values that were cancelled or have expired do not count.
    if event.attempt > 1,
      open.values.contains(where: { $0.place == place && $0.order > command.order })
    {
      return "is repeated although something newer waits"
    }
    open[event.number]?.phase = .sending
    if event.attempt == 1 { shownSince[place] = [] }
    return nil
  }

  private func wrongEnd(
    _ event: CommandEvent,
    _ command: Command,
    of property: Property,
    isOnline: Bool
  ) -> String? {
    let place = Int(event.key.rawValue)
    let wasSent = command.phase == .sending || command.phase == .sent
    switch event.phase {
    case .superseded:
      if isComplete, event.reason == "newer value", event.number >= newestNumber[place] {
        return "gave way to something newer that there is not"
      }
      return event.reason == nil ? "superseded for no reason" : nil
    case .confirmed:
      guard wasSent else { return "confirmed, but never sent" }
      guard let value = event.value, hasShown(value, property, place) else {
        return "confirmed, but the device shows something else"
      }
      return nil
    case .expired:
      guard command.expiresAt <= event.at else { return "expired before its time" }
      return isOnline ? "expired although everybody was there" : nil
    case .unchanged: return wasSent ? "unchanged after it was sent" : nil
    case .failed: return event.reason == nil ? "failed for no reason" : nil
    case .accepted, .cancelled, .rejected, .sending, .sent: return nil
    }
  }

  /// Whether a device shows a value, or has shown one that it may have moved away from on its way.
  private func hasShown(_ value: Value, _ property: Property, _ place: Int) -> Bool {
    guard case .number = property.kind else {
      return lastShown[place].map { property.isShown(value, by: $0) } ?? false
    }
    return shownSince[place].contains { property.isShown(value, by: $0) }
  }
}

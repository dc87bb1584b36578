// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
package import Control
package import Devices
package import JSON
package import LastOut
package import Values

/// Counts changes, commands and reports per key, and decides whether the demo succeeded.
package struct DemoLedger: Sendable {
  /// The counts and values of one key.
  package struct Account: Sendable {
    package var changes = 0
    package var commands = 0
    /// The longest time from a value's deadline until it was handed to the broker.
    package var worstLateness: Duration?
    /// The gateway's target.
    package var target: JSONValue?
    package var phase: Phase?
    /// The changes that the gateway has received, whether it accepted them or not.
    var received = 0
    /// The device's last report, as a wire value.
    package var reported: JSONValue?
    /// The times of the changes since the last command.
    package var burst: [Moment] = []
    /// The start of `max_wait`: the start of the burst or the last command.
    var base = Moment.zero
    var lastChange: Moment?
  }

  package let registry: Registry
  private var accounts: KeyArray<Account>
  /// The changed keys, in the order of their first change.
  package private(set) var order: [KeyIndex] = []

  package init(registry: Registry) {
    self.registry = registry
    accounts = KeyArray(repeating: Account(), count: registry.properties.count)
  }

  package subscript(key: KeyIndex) -> Account { accounts[key] }

  /// Records a change.
  package mutating func change(_ key: KeyIndex, at now: Moment) {
    if !order.contains(key) { order.append(key) }
    let policy = registry[key].property.policy
    let isOpen = accounts[key].lastChange.map { now < $0.advanced(by: policy.delay) } ?? false
    if !isOpen { accounts[key].base = now }
    if accounts[key].burst.isEmpty || !isOpen { accounts[key].burst = [] }
    accounts[key].burst.append(now)
    accounts[key].lastChange = now
    accounts[key].changes += 1
  }

  /// Records a command that was handed to the broker.
  package mutating func command(_ key: KeyIndex, at now: Moment) {
    accounts[key].commands += 1
    guard let last = accounts[key].lastChange else { return }
    let policy = registry[key].property.policy
    var due = last.advanced(by: policy.delay)
    if let limit = policy.maxWait {
      due = min(due, accounts[key].base.advanced(by: max(limit, policy.delay)))
    }
    accounts[key].base = now
    // A value before its deadline was leading, urgent, or merged with another property.
    guard now >= due else { return }
    let lateness = due.duration(to: now)
    accounts[key].worstLateness = max(accounts[key].worstLateness ?? .zero, lateness)
  }

  /// Starts a new burst, after the last one is shown.
  package mutating func closeBurst(_ key: KeyIndex) {
    accounts[key].burst = []
  }

  /// Records an event of the gateway.
  package mutating func event(_ event: EventObject) -> KeyIndex? {
    guard let key = try? registry.index(of: event.key) else { return nil }
    accounts[key].phase = event.phase
    if event.phase == .accepted || event.phase == .rejected { accounts[key].received += 1 }
    return key
  }

  /// Records a device's report; `document` is its payload.
  package mutating func report(topic: String, document: JSONValue) {
    for key in accounts.keys {
      for source in registry[key].property.states
      where source.topic == topic && !source.acknowledges {
        if let wire = source.value.value(in: document) { accounts[key].reported = wire }
      }
    }
  }

  /// Records the gateway's target of a key.
  package mutating func target(_ key: KeyIndex, _ value: JSONValue?) {
    accounts[key].target = value
  }

  /// Whether the gateway has received every change.
  package var isReceived: Bool { order.allSatisfy { self[$0].received >= self[$0].changes } }

  /// Whether the gateway has received every change, and each has reached its final phase.
  package var isSettled: Bool {
    isReceived
      && order.allSatisfy { key in
        switch self[key].phase {
        case nil, .accepted, .sending: false
        case .sent: registry[key].property.confirm == nil
        case .superseded, .unchanged, .cancelled, .rejected, .confirmed, .failed, .expired: true
        }
      }
  }

  /// Whether the device reports the target; `nil` for a property without a state topic.
  package func agrees(_ key: KeyIndex) -> Bool? {
    let property = registry[key].property
    guard !property.states.isEmpty else { return nil }
    guard let reported = self[key].reported, let target = self[key].target,
      let value = try? property.value(from: target)
    else { return false }
    return property.isShown(value, by: reported)
  }

  /// Whether every device that reports its state has the last requested value.
  package var isDone: Bool { order.allSatisfy { agrees($0) != false } }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
package import Control
package import Devices
package import JSON
package import LastOut

/// Keeps count of what went in, what came out and what the devices say; decides how it ended.
package struct DemoLedger: Sendable {
  /// What is known of one key.
  package struct Account: Sendable {
    package var changes = 0
    package var commands = 0
    /// The longest time from a value's deadline until it was handed to the broker.
    package var worstLateness: Duration?
    /// The newest value that the gateway spoke of.
    package var target: JSONValue?
    package var phase: Phase?
    /// What the device reported last, as it was on the wire.
    package var reported: JSONValue?
    /// When the changes of the open burst came; a new burst starts after a command.
    package var burst: [Moment] = []
    var base = Moment.zero
    var lastChange: Moment?
  }

  package let registry: Registry
  package private(set) var accounts: [Account]
  /// Keys that were changed, in the order in which they first were.
  package private(set) var order: [KeyIndex] = []

  package init(registry: Registry) {
    self.registry = registry
    accounts = Array(repeating: Account(), count: registry.properties.count)
  }

  package subscript(key: KeyIndex) -> Account { accounts[Int(key.rawValue)] }

  /// The hand made a change.
  package mutating func change(_ key: KeyIndex, at now: Moment) {
    if !order.contains(key) { order.append(key) }
    let policy = registry[key].property.policy
    let place = Int(key.rawValue)
    let isOpen = accounts[place].lastChange.map { now < $0.advanced(by: policy.delay) } ?? false
    if !isOpen { accounts[place].base = now }
    if accounts[place].burst.isEmpty || !isOpen { accounts[place].burst = [] }
    accounts[place].burst.append(now)
    accounts[place].lastChange = now
    accounts[place].changes += 1
  }

  /// A command left for the broker.
  package mutating func command(_ key: KeyIndex, at now: Moment) {
    let place = Int(key.rawValue)
    accounts[place].commands += 1
    guard let last = accounts[place].lastChange else { return }
    let policy = registry[key].property.policy
    var due = last.advanced(by: policy.delay)
    if let limit = policy.maxWait {
      due = min(due, accounts[place].base.advanced(by: max(limit, policy.delay)))
    }
    accounts[place].base = now
    // What left before its deadline led, was urgent, or rode along with another property.
    guard now >= due else { return }
    let lateness = due.duration(to: now)
    accounts[place].worstLateness = max(accounts[place].worstLateness ?? .zero, lateness)
  }

  /// Begins a new burst: what came before has been shown.
  package mutating func closeBurst(_ key: KeyIndex) {
    accounts[Int(key.rawValue)].burst = []
  }

  /// The gateway told an event.
  package mutating func event(_ event: EventObject) -> KeyIndex? {
    guard let key = try? registry.index(of: event.key) else { return nil }
    accounts[Int(key.rawValue)].phase = event.phase
    return key
  }

  /// A device published a state; `document` is its payload.
  package mutating func report(topic: String, document: JSONValue) {
    for (place, entry) in registry.properties.enumerated() {
      for source in entry.property.states
      where source.topic == topic && !source.acknowledges {
        if let wire = source.value.value(in: document) { accounts[place].reported = wire }
      }
    }
  }

  /// What the gateway has as the target of a key.
  package mutating func target(_ key: KeyIndex, _ value: JSONValue?) {
    accounts[Int(key.rawValue)].target = value
  }

  /// Whether nothing that was asked for is still on its way.
  package var isSettled: Bool {
    order.allSatisfy { key in
      switch self[key].phase {
      case nil, .accepted, .sending: false
      case .sent: registry[key].property.confirm == nil
      case .superseded, .unchanged, .cancelled, .rejected, .confirmed, .failed, .expired: true
      }
    }
  }

  /// Whether the device shows the target; `nil` where it reports nothing to compare with.
  package func agrees(_ key: KeyIndex) -> Bool? {
    let property = registry[key].property
    guard !property.states.isEmpty else { return nil }
    guard let reported = self[key].reported, let target = self[key].target,
      let value = try? property.value(from: target)
    else { return false }
    return property.isShown(value, by: reported)
  }

  /// Whether every device that reports its state shows what was asked for last.
  package var isDone: Bool { order.allSatisfy { agrees($0) != false } }
}

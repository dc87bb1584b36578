// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut
import Values

/// The way of an accepted value to its device.
///
/// A value waits in the last-out queue until its key is quiet, as a command in the ``SendQueue``
/// until its lane, its device and the key's previous command let it be sent, and in the
/// ``DeliveryTable`` until the device shows it. Each part decides on its own; the dispatcher moves
/// values from one to the next, key by key, and emits what happens to them.
package struct CommandDispatcher: ~Copyable {
  package internal(set) var registry: Registry
  var facts: KeyArray<PropertyFacts>
  var relations: LazyArray<Relations>
  /// What the numbers of messages count from.
  let firstMessage: UInt64

  /// Values that wait for quiet.
  var queue: LastOutCore<PendingChange>
  /// Commands that wait to be sent.
  package internal(set) var sendQueue: SendQueue
  /// Commands in flight, and what devices have.
  var deliveries: DeliveryTable
  package var log: EventLog
  /// Changes of groups whose way to the members is settled.
  var groupDecisions = GroupDecisions()
  /// A reload in progress.
  var reload: DefinitionReload?
  /// Whether lanes hold nothing back and nothing is sent again for want of a confirmation.
  var isClosing = false

  init(registry: Registry, settings: CommandSettings) {
    self.registry = registry
    relations = Relations.all(in: registry)
    facts = PropertyFacts.all(in: registry, relations)
    firstMessage = settings.firstMessage
    queue = LastOutCore(policy: .standard, capacity: max(facts.count, 1))
    sendQueue = SendQueue(registry: registry, facts, relations, limits: settings.lanes)
    deliveries = DeliveryTable(keys: facts.count, devices: registry.devices.count)
    log = EventLog(keys: facts.count)
    setPolicies()
  }

  private mutating func setPolicies() {
    var rules: [Int32?] = Array(repeating: nil, count: registry.definitionCount)
    for key in facts.keys {
      let number = registry.definitionNumber(of: key)
      let policy = registry.definition(of: key)
      let rule = rules[number] ?? queue.addPolicy(policy.property.policy)
      rules[number] = rule
      queue.setRule(rule, for: key)
    }
  }

  // MARK: - Into the queue

  /// Lets an accepted value settle, in place of an older one that waits for quiet or to be repeated.
  @inline(__always)
  mutating func enqueue(
    _ change: consuming PendingChange,
    for key: KeyIndex,
    at now: Moment,
    delay: Duration? = nil,
    leads: Bool = true
  ) {
    if let replaced = queue.enqueue(change, for: key, at: now, delay: delay, leads: leads) {
      log.statistics.collapsed += 1
      if log.hasReader(of: replaced) { emitReplaced(replaced, of: key, at: now) }
    }
    if sendQueue.hasRepetition(key) { endRepetition(of: key, reason: Delivery.newerValue, at: now) }
  }

  private mutating func emitReplaced(_ replaced: PendingChange, of key: KeyIndex, at now: Moment) {
    // What waits now counts the replaced value too.
    let collapsed = queue.pending(key).map { $0.collapsed - 1 } ?? 0
    log.emit(
      .superseded,
      of: replaced,
      collapsed: max(collapsed, 0),
      reason: Delivery.newerValue,
      for: key,
      facts[key],
      at: now
    )
  }

  /// Ends the quiet period of `key`; `false` when nothing was pending.
  @discardableResult
  package mutating func flush(_ key: KeyIndex, at now: Moment) -> Bool {
    switch queue.flush(key, at: now) {
    case .run(let run):
      settle(run, at: now)
      return true
    case .markedDue: return true
    case .nothing: return false
    }
  }

  // MARK: - Time

  /// The next moment at which anything here is due, or a message can be sent.
  func nextDeadline(after now: Moment) -> Moment? {
    let earliest = Moment.earlier(queue.nextDeadline, nextTimeout)
    return isClosing ? earliest : Moment.earlier(earliest, sendQueue.nextToken(after: now))
  }

  /// When a command has waited too long to be sent or to be confirmed, or makes room in its lane, or
  /// a key is at rest.
  @inline(__always)
  var nextTimeout: Moment? {
    Moment.earlier(
      Moment.earlier(sendQueue.nextExpiry, deliveries.nextOverdue),
      Moment.earlier(sendQueue.nextPresumption, sendQueue.retained.deadline)
    )
  }

  /// Ends or repeats one command that has waited too long at `due`, or sets the target of one key that
  /// is at rest; `false` when there is none.
  mutating func timeOut(at due: Moment, _ now: Moment) -> Bool {
    if let key = sendQueue.popExpired(at: due) {
      // A key that gets its new definition has another deadline, or none.
      if migrate(key, at: now) { return true }
      let reason = sendQueue.waitReason(of: key)
      // Of an action, those behind it have times to live of their own.
      if let command = sendQueue.remove(key) {
        emit(.expired, of: command, reason: reason, for: key, at: now)
        refreshTarget(key)
      }
    } else if let key = deliveries.popOverdue(at: due) {
      migrate(key, at: now)
      if deliveries[key].awaitsConfirmation {
        confirmationOverdue(key, at: now)
      } else {
        rest(key, at: due, now)
      }
    } else if let end = sendQueue.retained.deadline, end <= due {
      retainedOverdue(at: now)
    } else {
      return sendQueue.endPresumed(at: due)
    }
    return true
  }

  // MARK: - What keys show

  /// The newest value that is pending or in flight, otherwise what the device has.
  func expectedValue(of key: KeyIndex) -> Value? {
    queue.pending(key)?.value.value ?? sendQueue[key]?.value ?? deliveries[key].expected
  }

  /// Shows as the target what the device will have; a group's key shows what its members will.
  mutating func refreshTarget(_ key: KeyIndex) {
    guard !isAction(key), !facts[key].isGroup else { return }
    log.statuses.setTarget(expectedValue(of: key), of: key)
  }

  @inline(__always)
  mutating func setTarget(_ value: Value?, of key: KeyIndex) {
    if !isAction(key) { log.statuses.setTarget(value, of: key) }
  }

  /// Emits a phase of a command.
  mutating func emit(
    _ phase: Phase,
    of command: Command,
    reason: String? = nil,
    for key: KeyIndex,
    at now: Moment
  ) {
    log.emit(phase, of: command, reason: reason, for: key, facts[key], at: now)
    guard facts[key].hasImplications else { return }
    switch phase {
    case .accepted, .sending, .sent, .confirmed: break
    case .unchanged, .superseded, .cancelled, .rejected, .failed, .expired:
      endRiders(of: key, with: command, at: now)
    }
  }
}

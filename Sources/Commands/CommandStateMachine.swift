// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import JSON
package import LastOut
package import Values

/// Decides what becomes of every change: events and the time go in, messages and events come out.
///
/// It decides what a change means: its value, whether there is room for it, and which commands of
/// other keys it ends. Then the ``CommandDispatcher`` takes the value to its device.
///
/// It has no clock, no lock and does no I/O. After any call, the owner removes the events and
/// changed keys of the dispatcher's log, sends what its ``CommandDispatcher/nextPublish(at:)``
/// returns, and arms one timer for ``nextDeadline(after:)``. What concerns the way of commands alone,
/// the owner asks the dispatcher.
package struct CommandStateMachine: ~Copyable {
  /// Values on their way, with what keys show and what devices have.
  package var dispatcher: CommandDispatcher
  /// Steps that wait for the state they count from.
  var waitingSteps: WaitingSteps
  /// Keys that a person has changed lately.
  package internal(set) var holds = HandHolds()
  var settings: CommandSettings

  /// Whether steps that had waited are kept in ``appliedSteps``.
  package var recordsAppliedSteps = false
  /// The steps that had waited and were accepted, in order, until the owner removes them.
  package var appliedSteps: [AppliedStep] = []

  package init(registry: Registry, settings: CommandSettings = CommandSettings()) {
    self.settings = settings
    dispatcher = CommandDispatcher(registry: registry, settings: settings)
    waitingSteps = WaitingSteps(keys: registry.properties.count, patience: settings.stepPatience)
  }

  package var registry: Registry { dispatcher.registry }

  // MARK: - What waits

  /// Whether anything is not acknowledged, what cannot be sent included; constant time.
  package var hasUnsent: Bool { dispatcher.hasUnsent || !waitingSteps.isEmpty }

  /// The keys of which something is not acknowledged, in order of definition.
  ///
  /// Takes time in proportion to all keys, unless there are none.
  package func unsentKeys() -> [KeyIndex] {
    guard hasUnsent else { return [] }
    return dispatcher.facts.keys.filter { dispatcher.isUnsent($0) || waitingSteps.contains($0) }
  }

  // MARK: - Time

  /// The next moment at which ``advance(to:)`` or sending has something to do; `nil`
  /// when nothing waits for time.
  package func nextDeadline(after now: Moment) -> Moment? {
    let next = Moment.earlier(dispatcher.nextDeadline(after: now), waitingSteps.nextOverdue)
    if dispatcher.isClosing { return next }
    return Moment.earlier(next, dispatcher.sendQueue.nextRequestDeadline(after: now))
  }

  /// Moves on everything that is due: values that are quiet, then whatever has waited too long.
  package mutating func advance(to now: Moment) {
    dispatcher.settleQuiet(at: now)
    dispatcher.sendQueue.endPresumedRequests(at: now)
    while let due = Moment.earlier(dispatcher.nextTimeout, waitingSteps.nextOverdue), due <= now {
      if !dispatcher.timeOut(at: due, now), let key = waitingSteps.popOverdue(at: due) {
        migrate(key, at: now)
        rejectSteps(of: key, as: .noBase, at: now)
      }
    }
  }

  // MARK: - Devices

  /// Takes a value that a device reported for a property, as found on the wire.
  @discardableResult
  package mutating func reported(
    _ key: KeyIndex,
    _ wire: JSONValue,
    at now: Moment
  ) -> ReportOutcome {
    migrate(key, at: now)
    dispatcher.sendQueue.reported(key)
    guard let report = dispatcher.reported(key, wire, at: now) else {
      // A device reports null for what it does not know, and an action has no value.
      let facts = dispatcher.facts[key]
      let isReadable = wire == .null || facts.isAction || facts.hasForms
      let isFirst = dispatcher.reportedWithoutValue(key, wire, isReadable: isReadable)
      return isReadable ? .nothing : .unreadable(isFirst: isFirst)
    }
    if report.isByHand { endOthersByHand(report.value, of: key, at: now) }
    applySteps(of: key, at: now)
    return .value(report.value)
  }

  /// Takes a message on a state topic in which there can be no value; see
  /// ``StateSource/Reading/unreadable``.
  package mutating func reportedUnreadable(
    _ key: KeyIndex,
    _ payload: JSONValue,
    at now: Moment
  ) -> ReportOutcome {
    migrate(key, at: now)
    if dispatcher.facts[key].hasForms { return .nothing }
    let isFirst = dispatcher.reportedWithoutValue(key, payload, isReadable: false)
    return .unreadable(isFirst: isFirst)
  }

  /// Takes a device's own acknowledgement of a value; its state may follow.
  package mutating func acknowledged(_ key: KeyIndex, _ wire: JSONValue, at now: Moment) {
    migrate(key, at: now)
    dispatcher.accepted(key, wire, at: now)
  }

  /// Takes a device's reply to the message with the number `message`; `problem` is why it refused.
  package mutating func replied(
    _ key: KeyIndex,
    to message: Int64,
    problem: String?,
    at now: Moment
  ) {
    migrate(key, at: now)
    dispatcher.replied(key, to: message, problem: problem, at: now)
  }
}

/// What a device's report says.
package enum ReportOutcome: Hashable, Sendable {
  case value(Value)
  /// It can be read, and has no value.
  case nothing
  /// It cannot be read; `isFirst` for the first such report of the property.
  case unreadable(isFirst: Bool)
}

/// What a ``CommandStateMachine`` is configured with beside the devices.
package struct CommandSettings: Sendable {
  /// By lane; one that is not named here has no limit.
  package var lanes: [String: LaneLimits] = [:]
  /// How many keys may have a waiting value.
  package var pendingLimit = 100_000
  /// How long a step waits for the state that was requested.
  package var stepPatience: Duration = .seconds(2)
  /// What the numbers of messages count from.
  ///
  /// It differs after each start, so that a reply to an earlier process's message is recognised.
  package var firstMessage: UInt64 = 0

  package init() {}
}

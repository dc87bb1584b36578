// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
import Devices
package import JSON
package import LastOut
import Routing
import Values

/// What brokers and devices report.
extension GatewayCore {
  // MARK: - Brokers

  /// The connection to the gateway's own broker was made or ended.
  ///
  /// The broker then sends what it retains; ``retainedMessagesCompleted(of:at:)`` follows. Until then, for
  /// two seconds at most, nothing is sent to a device whose availability was not reported on this
  /// connection, except urgent values, and nothing that an earlier process left for a key whose state was
  /// not.
  package mutating func connectionChanged(isUp: Bool, at now: Moment) {
    guard isConnected != isUp else { return }
    isConnected = isUp
    pipeline.commands.dispatcher.connectionChanged(isUp: isUp, hasRetained: true, at: now)
    // The broker may have lost its retained messages.
    if isUp { states.forgetPublished() }
  }

  /// The broker has sent the messages that it retains, of these devices or, with `nil`, of all.
  package mutating func retainedMessagesCompleted(of devices: [Int]? = nil, at now: Moment) {
    pipeline.commands.dispatcher.retainedCompleted(of: devices, at: now)
  }

  /// What became of ``Effect/publish(_:)``; a number that was answered before is ignored.
  package mutating func commandFinished(
    _ number: UInt64,
    _ outcome: CommandPublish.Outcome,
    at now: Moment
  ) {
    pipeline.commands.dispatcher.finish(number, outcome, at: now)
  }

  /// Accepts a message for routes.
  ///
  /// `document` is the payload as JSON, where ``RouteMachine/needsDocument(_:)`` says so; `keys` is
  /// what ``RouteMachine/outputs(fedBy:broker:)`` returned; `trail` names the gateways that the message has
  /// passed, and `mark` this one.
  package mutating func route(
    _ payload: Span<UInt8>,
    document: JSONValue?,
    for keys: [KeyIndex]?,
    topic: Span<UInt8>,
    retained: Bool,
    trail: String,
    mark: String,
    at now: Moment
  ) {
    routes.advance(to: now)
    let rejection = routes.admit(
      payload,
      document: document,
      for: keys,
      retained: retained,
      trail: trail,
      mark: mark,
      isShuttingDown: isShuttingDown,
      at: now
    )
    switch rejection {
    case nil: break
    case .retained: rejectRetained(topic: Text.of(topic))
    case .returned(let to, let reason):
      outbox.log(rejections.recordReturned(topic: Text.of(topic), to: to, reason: reason))
    case .unread: outbox.log(rejections.recordUnread(topic: Text.of(topic), size: payload.count))
    case .other(let kind, let reason):
      reject(kind, topic: Text.of(topic), reason: reason, at: now)
    }
  }

  /// Counts a message that is rejected, and logs it, at most once in ten seconds for each kind and
  /// topic.
  package mutating func reject(
    _ kind: RejectionLog.Kind,
    topic: String,
    reason: @autoclosure () -> String,
    at now: Moment
  ) {
    outbox.log(rejections.record(kind, topic: topic, reason: reason(), at: now))
  }

  /// Counts a retained message on a command or route topic, which is ignored.
  package mutating func rejectRetained(topic: String) {
    outbox.log(rejections.recordRetained(topic: topic))
  }

  // MARK: - Devices

  /// A device reported a value by one of the property's state sources.
  package mutating func reported(
    _ key: KeyIndex,
    _ wire: JSONValue,
    source: Int,
    at now: Moment
  ) {
    pipeline.commands.advance(to: now)
    loops.reported(key, wire, source: source)
    switch pipeline.commands.reported(key, wire, at: now) {
    case .value(let value): reports.record(value, of: key, at: now)
    case .unreadable(isFirst: true): logUnreadable(key, wire, source: source)
    case .nothing, .unreadable(isFirst: false): break
    }
  }

  /// A message came on one of the property's state topics in which there can be no value.
  package mutating func reportedUnreadable(
    _ key: KeyIndex,
    _ payload: JSONValue,
    source: Int,
    at now: Moment
  ) {
    pipeline.commands.advance(to: now)
    if pipeline.commands.reportedUnreadable(key, payload, at: now) == .unreadable(isFirst: true) {
      logUnreadable(key, payload, source: source)
    }
  }

  private mutating func logUnreadable(_ key: KeyIndex, _ report: JSONValue, source: Int) {
    let entry = registry[key]
    let state = entry.states[source]
    outbox.log(
      LogEntry(
        .warning,
        "Report cannot be read",
        [
          "key": entry.key, "topic": state.topic, "value": state.value.text,
          "type": entry.definition.property.kind.name, "report": Excerpt.of(report),
        ]
      )
    )
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
import Devices
package import Durability
package import JSON
package import LastOut
package import Routing

/// What brokers, devices and the journal's thread report.
extension GatewayCore {
  // MARK: - Brokers

  /// The connection to the gateway's own broker was made or ended.
  package mutating func connectionChanged(isUp: Bool, at now: Moment) {
    guard isConnected != isUp else { return }
    isConnected = isUp
    pipeline.commands.connection(isUp: isUp, at: now)
    // The broker may have lost its retained messages.
    if isUp { states.forgetPublished() }
  }

  /// What became of ``Effect/publish(_:)``; a number that was answered before is ignored.
  package mutating func commandFinished(
    _ number: UInt64,
    _ outcome: CommandPublish.Outcome,
    at now: Moment
  ) {
    pipeline.commands.finish(number, outcome, at: now)
  }

  /// What became of ``Effect/forward(_:broker:)``; a number that was answered before is ignored.
  package mutating func routeFinished(_ number: UInt64, _ outcome: RouteMachine.Outcome) {
    routes.finish(number, outcome)
  }

  /// The outputs of the routes that match a topic; empty when none does.
  ///
  /// - Returns: `nil` when a route matches, but too many topics are known.
  package mutating func routeOutputs(of topic: Span<UInt8>, from broker: Int) -> [KeyIndex]? {
    routes.outputs(fedBy: topic, broker: broker)
  }

  /// Accepts a message for routes.
  ///
  /// `document` is the payload as JSON, where ``RouteMachine/needsDocument(_:)`` says so; `keys` is
  /// what ``routeOutputs(of:from:)`` returned; `trail` names the gateways that the message has
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
    pipeline.commands.reported(key, wire, at: now)
  }

  /// The convention's own acknowledgement of a value.
  package mutating func acknowledged(_ key: KeyIndex, _ wire: JSONValue, at now: Moment) {
    pipeline.commands.advance(to: now)
    pipeline.commands.acknowledged(key, wire, at: now)
  }

  /// A device replied to a message; `problem` is why it refused.
  package mutating func replied(
    _ key: KeyIndex,
    to message: Int64,
    problem: String?,
    at now: Moment
  ) {
    pipeline.commands.advance(to: now)
    pipeline.commands.replied(key, to: message, problem: problem, at: now)
  }

  /// One availability source of a device reported.
  ///
  /// - Returns: Whether the device is online or offline now and was not before.
  package mutating func availability(
    ofDevice device: Int,
    source: Int,
    isOnline: Bool,
    at now: Moment
  ) -> Bool {
    pipeline.commands.advance(to: now)
    let wasOnline = commands.dispatcher.isDeviceOnline(device)
    pipeline.commands.availability(ofDevice: device, source: source, isOnline: isOnline, at: now)
    return commands.dispatcher.isDeviceOnline(device) != wasOnline
  }

  /// A device that sleeps most of the time reported itself.
  package mutating func awoke(device: Int, at now: Moment) {
    pipeline.commands.advance(to: now)
    pipeline.commands.awoke(device: device, at: now)
  }

  // MARK: - The journal

  /// What became of ``Effect/write(_:)``.
  package mutating func storeFinished(_ result: JournalResult, at now: Moment) {
    let registry = registry
    pipeline.durability?.finished(result, in: registry, at: now)
  }

  /// The answer to ``Effect/readClock``.
  package mutating func clockRead(_ clock: JournalClock) { pipeline.durability?.judge(clock) }

  /// The answer to ``Effect/closeStore``.
  package mutating func storeClosed() { pipeline.durability?.closed() }
}

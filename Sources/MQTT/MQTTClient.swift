// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut
package import Operations

/// One connection to a broker, kept up for ever: libmosquitto as a codec on our event loop.
///
/// A fresh library handle per attempt, own deadlines, jittered back-off, re-subscription. Publishes
/// are handed over only while ``canPublish``; what was unacknowledged when a connection ends is
/// reported as lost, and the owner decides what is the newest value to send again.
package final class MQTTClient {
  /// Names one publish to its owner.
  package typealias Token = UInt64

  package enum State: Hashable, Sendable {
    /// Not started, or closed.
    case idle
    case connecting
    case connected(sessionPresent: Bool)
    /// Waiting before the next attempt; `reason` in words.
    case waiting(until: Moment, reason: String)
  }

  /// What became of a publish.
  package enum Outcome: Hashable, Sendable {
    /// Acknowledged (QoS 1, 2) or handed to the socket (QoS 0).
    case acknowledged
    /// Refused by the broker or by the library; sending the same again is pointless.
    case refused(reason: String)
    /// The connection ended first; whether the broker has it is unknown.
    case lost
  }

  package struct MessageFlags: Sendable {
    package var qos: Int
    package var retained: Bool
    package var duplicate: Bool
  }

  package struct Subscription: Hashable, Sendable {
    package var filter: String
    package var qos: Int
    /// Whether retained messages are wanted (command and route topics: no).
    package var wantsRetained: Bool
    package var noLocal: Bool
    package init(filter: String, qos: Int = 1, wantsRetained: Bool, noLocal: Bool = false) {
      self.filter = filter
      self.qos = qos
      self.wantsRetained = wantsRetained
      self.noLocal = noLocal
    }
  }

  package init(configuration: MQTTConfiguration, loop: EventLoop, log: Logger) throws(OperationsError) {
    fatalError("skeleton")
  }

  /// Called for each message. Topic and payload are valid only during the call. `properties` gives
  /// response topic and correlation data on demand.
  package var onMessage: ((_ topic: Span<UInt8>, _ payload: Span<UInt8>, _ message: borrowing InboundMessage) -> Void)?
  /// Called on every change of ``state``, after subscriptions were sent on a new connection.
  package var onState: ((State) -> Void)?
  /// Called once for each accepted publish. May be called before ``publish`` returns.
  package var onOutcome: ((Token, Outcome) -> Void)?
  /// Called when ``canPublish`` becomes true.
  package var onReady: (() -> Void)?

  package private(set) var state: State = .idle
  /// Connected, and fewer than the window unacknowledged.
  package var canPublish: Bool { fatalError("skeleton") }
  package var unacknowledgedCount: Int { fatalError("skeleton") }

  /// Starts connecting; the broker may be absent.
  package func start() { fatalError("skeleton") }

  /// Adds subscriptions, now and on every later connection.
  package func subscribe(_ subscriptions: [Subscription]) { fatalError("skeleton") }
  package func unsubscribe(_ filters: [String]) { fatalError("skeleton") }

  /// Hands one message to the broker. Only while ``canPublish``; `false` if it could not be taken
  /// at all (not connected), in which case no outcome follows.
  package func publish(
    topic: String, payload: [UInt8], qos: Int = 1, retain: Bool = false,
    properties: PublishProperties = PublishProperties(), token: Token
  ) -> Bool { fatalError("skeleton") }

  /// Disconnects in good order, or at once if that does not go through within a moment. No last will is sent.
  package func close() { fatalError("skeleton") }
}

/// What came with a message beside topic and payload.
package struct InboundMessage: ~Copyable {
  package let flags: MQTTClient.MessageFlags
  /// MQTT 5 response topic and correlation data, if the sender asked for an answer.
  package var responseTopic: String? { fatalError("skeleton") }
  package func userProperty(_ name: String) -> String? { fatalError("skeleton") }
  package var correlationData: [UInt8]? { fatalError("skeleton") }
}

/// MQTT 5 properties of a publish; ignored under 3.1.1.
package struct PublishProperties: Hashable, Sendable {
  package var messageExpiry: Duration?
  package var correlationData: [UInt8]?
  package var userProperties: [String: String] = [:]
  package init() {}
}

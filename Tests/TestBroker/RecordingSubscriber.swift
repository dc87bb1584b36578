// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Glibc
package import LastOut
import Operations
import Synchronization

/// A plain client beside the one under test: records what it receives, publishes and waits.
///
/// Has its own thread and its own use of libmosquitto, so that it shows independently what the
/// broker sends. Reconnects by itself. All methods may be called from any thread.
package final class RecordingSubscriber: Sendable {
  /// One message, in order of arrival.
  package struct Message: Hashable, Sendable {
    package var topic: String
    package var payload: [UInt8]
    package var qos: Int
    package var retained: Bool
    package var at: Moment
    package var userProperties: [String: String]
    package var correlationData: [UInt8]?
    package var expirySeconds: Int?
    /// The payload as text.
    package var text: String { String(decoding: payload, as: UTF8.self) }
  }

  private let witness: Witness

  /// Connects and subscribes; returns when the broker has confirmed both.
  ///
  /// - Throws: ``TestBrokerError`` if that takes too long.
  package init(port: Int, filters: [String] = ["#"], qos: Int = 2) throws {
    witness = try Witness(port: port, filters: filters, qos: Int32(qos))
    guard witness.wait(within: .patience, { $0.isSubscribed }) else {
      witness.stop()
      throw TestBrokerError("no subscription at port \(port)")
    }
  }

  deinit { witness.stop() }

  /// Everything received so far, in order.
  package var messages: [Message] { witness.read { $0.messages } }

  /// The payloads received on `topic`, as text, in order.
  package func texts(on topic: String) -> [String] {
    messages.filter { $0.topic == topic }.map(\.text)
  }

  package func clear() { witness.change { $0.messages = [] } }

  /// Waits until what is published from now on is received, although the broker may have been away;
  /// `false` if that takes too long.
  package func catchUp() -> Bool { witness.catchUp() }

  /// Waits until `count` messages have arrived in all; `false` if that takes too long.
  package func waitFor(count: Int, within limit: Duration = .patience) -> Bool {
    witness.wait(within: limit) { $0.messages.count >= count }
  }

  /// Waits until the received messages satisfy `condition`; checked after each message.
  package func waitFor(
    within limit: Duration = .patience,
    _ condition: ([Message]) -> Bool
  ) -> Bool {
    witness.wait(within: limit) { condition($0.messages) }
  }

  /// Publishes and waits for the acknowledgement; `false` if there is none in time.
  @discardableResult
  package func publish(
    _ topic: String,
    _ payload: [UInt8],
    qos: Int = 1,
    retain: Bool = false,
    responseTopic: String? = nil,
    correlationData: [UInt8]? = nil,
    userProperties: [String: String] = [:]
  ) -> Bool {
    witness.publish(
      topic,
      payload,
      qos: Int32(qos),
      retain: retain,
      responseTopic: responseTopic,
      correlationData: correlationData,
      userProperties: userProperties
    )
  }

  @discardableResult
  package func publish(_ topic: String, _ text: String, qos: Int = 1, retain: Bool = false) -> Bool
  {
    publish(topic, Array(text.utf8), qos: qos, retain: retain)
  }
}

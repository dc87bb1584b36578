// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Routing

/// A message of the gateway's own that a broker delivers behind what it retains.
///
/// The gateway publishes it after it has subscribed, to a topic that it has subscribed to as well. Its
/// payload differs with each process and connection.
struct RetainedMarker {
  private let process: UInt32
  private var connections = 0

  /// `process`: differs from that of every other gateway at the broker.
  init(process: UInt32) { self.process = process }

  /// The payload for the newest connection.
  var payload: [UInt8] { Array("\(process)-\(connections)".utf8) }

  /// A connection was made; returns what to publish on it.
  mutating func next() -> [UInt8] {
    connections += 1
    return payload
  }

  /// Whether a payload is that of the newest connection.
  func matches(_ payload: Span<UInt8>) -> Bool { Bytes.areEqual(payload, self.payload) }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import GatewayCore
import LastOut
import MQTT
import Routing

/// Retained commands are ignored: a stale command must not replay.
///
/// Subscriptions to command topics ask the broker not to send retained messages. Under MQTT 3.1.1 it
/// sends them nevertheless, and a filter for state topics that covers a command topic requests them.
extension MQTTSurface {
  /// Whether a message on a command topic is retained; if so, it is counted and logged.
  func ignoresRetained(_ message: borrowing InboundMessage, on topic: Span<UInt8>) -> Bool {
    guard message.flags.retained else { return false }
    ignoreRetained(topic: Text.of(topic))
    return true
  }

  /// Counts and logs a retained message, which has no further effect.
  func ignoreRetained(topic: String) { context.core.rejectRetained(topic: topic) }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// What the gateway refuses to grow beyond.
package struct Limits: Hashable, Sendable {
  /// Keys that may be pending at a time.
  package var pending = 100_000
  /// Bytes of one payload from the broker.
  package var payload = 64 * 1024
  /// Bytes of one line on the control socket and over HTTP.
  package var line = 64 * 1024
  /// Connections over HTTP at a time.
  package var httpClients = 64
  /// Events kept for a client that reads slowly; more, and it is cut off.
  package var events = 1024
  package init() {}
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// The phase of a client, with the state of that phase.
enum ConnectionPhase {
  case idle
  /// A thread resolves the name and opens the connection.
  case starting(ConnectThread, deadline: Moment)
  /// The loop owns the socket; CONNACK has not arrived.
  case handshaking(deadline: Moment)
  /// CONNACK arrived at `since`; `keepAliveAt` is the next keep-alive check.
  case connected(since: Moment, keepAliveAt: Moment?)
  /// DISCONNECT is queued.
  case closing(deadline: Moment)
  case waiting(until: Moment)

  /// The time without a loss after which probing for poison topics ends.
  static let provingTime: Duration = .seconds(5)

  /// How long a connection must have lasted without a message whose fault its end may be.
  static let goodTime: Duration = .seconds(1)

  /// The next moment at which the client must act, with `window` in flight.
  func nextDeadline(
    window: PublishWindow,
    acknowledgementDeadline: Duration
  ) -> Moment? {
    switch self {
    case .idle: return nil
    case .starting(_, let deadline), .handshaking(let deadline), .closing(let deadline):
      return deadline
    case .waiting(let until): return until
    case .connected(let since, let keepAliveAt):
      var next = keepAliveAt
      if let due = window.due(after: acknowledgementDeadline) { next = min(next ?? due, due) }
      if window.isHeld || window.poisonTopics.awaitsStability {
        let proved = since.advanced(by: window.isHeld ? Self.goodTime : Self.provingTime)
        next = min(next ?? proved, proved)
      }
      return next
    }
  }
}

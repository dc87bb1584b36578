// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// Requests for the states of devices.
extension CommandStateMachine {
  /// The next message that asks a device for its state; `nil` when none may be sent now.
  ///
  /// Call it while the client can publish, after ``CommandDispatcher/nextPublish(at:)`` has returned `nil`.
  package mutating func nextRequest(at now: Moment) -> StateRequestMessage? {
    dispatcher.isClosing ? nil : dispatcher.sendQueue.nextRequest(at: now)
  }

  /// Asks for the states of these keys, whose definitions a reload has changed.
  package mutating func requestStates(of keys: some Sequence<KeyIndex>) {
    for key in keys { dispatcher.sendQueue.wantState(of: key) }
  }
}

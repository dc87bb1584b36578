// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices

/// Whoever asks for something and hears what becomes of it: a client of the control socket, or a
/// request over HTTP.
protocol Asker: AnyObject {
  /// Names the asker in ``ChangeOrigin/replyTo``; never 0.
  var number: UInt64 { get }
  /// Nobody reads what is answered any more.
  var isDeaf: Bool { get }
  func send(_ reply: ControlReply)
  /// A change of this asker waits for later phases.
  func beginWait()
  func endWait()
  /// Why the change is refused that the next reply is about.
  func note(_ refusal: ValidationError)
  /// Who asks for a change and says nothing of it: the same for all of those.
  var plainOrigin: ChangeOrigin { get }
}

extension Asker {
  var isDeaf: Bool { false }
  func beginWait() {}
  func endWait() {}
  func note(_ refusal: ValidationError) {}

  var plainOrigin: ChangeOrigin { ChangeOrigin(source: "socket", replyTo: number) }

  /// Who asks for a change, as its events know it.
  func origin(of request: ControlRequest) -> ChangeOrigin {
    guard request.replyID != nil || request.source != nil || request.wait != nil else {
      return plainOrigin
    }
    return ChangeOrigin(
      id: request.replyID,
      source: request.source ?? "socket",
      replyTo: number,
      wantsPhases: request.wait != nil
    )
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

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
}

extension Asker {
  var isDeaf: Bool { false }
  func beginWait() {}
  func endWait() {}
  func note(_ refusal: ValidationError) {}
}

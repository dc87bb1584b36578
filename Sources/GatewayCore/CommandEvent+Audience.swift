// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Values

extension CommandEvent {
  /// Whether anyone receives this event.
  ///
  /// Phases that are published on MQTT always are. Of the others the requester receives `accepted`,
  /// the end of a step that waited for its state, and, if it follows the command, every phase.
  func isHeard(isWatched: Bool) -> Bool {
    switch phase {
    case .unchanged, .cancelled, .rejected, .sent, .confirmed, .failed, .expired: return true
    case .accepted: return isWatched || origin != nil
    case .superseded, .sending:
      guard !isWatched else { return true }
      guard let origin else { return false }
      return origin.wantsPhases || origin.responseTopic != nil || value == nil
    }
  }
}

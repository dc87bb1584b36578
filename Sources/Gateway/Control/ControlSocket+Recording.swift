// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import GatewayCore
import LastOut
import Values

/// Recording: accepted changes, as lines that `simulate` plays.
extension ControlSocket {
  /// Sends an accepted change to the clients that record its key.
  func sendToRecorders(_ change: RecordedChange, key: String) {
    let operation: ControlRequest.Operation =
      switch change.operation {
      case .set(let value): .set(value.json)
      case .flush: .flush
      case .cancel: .cancel
      }
    var request = ControlRequest(operation, key: key)
    request.now = change.skipsQuiet
    request.source = change.source.map(Self.shortened)
    sendToRecorders(request, at: change.at)
  }

  /// The longest source that the grammar accepts, in bytes; a topic may be longer.
  private static let longestSource = 64

  private static func shortened(_ source: String) -> String {
    guard source.utf8.count > longestSource else { return source }
    var result = ""
    for character in source {
      guard result.utf8.count + character.utf8.count <= longestSource else { break }
      result.append(character)
    }
    return result
  }
}

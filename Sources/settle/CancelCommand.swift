// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

struct CancelCommand: PatternCommand {
  static let name = "cancel"
  static let summary = "Drop pending values without sending them."
  static let examples = [
    Example("settle cancel desk-lamp/brightness", "One key."),
    Example("settle cancel '*'", "Everything that is pending."),
  ]
  static let parameters = patternParameters(isOptional: false)

  var pattern = ""
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    let reply = try ask(ControlRequest(.cancel, key: pattern))
    guard case .cancelled(let count, _) = reply else { return .unexpected(reply) }
    show(count, "cancelled")
    return .done
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

struct FlushCommand: PatternCommand {
  static let name = "flush"
  static let summary = "Send pending values now instead of waiting until their keys are quiet."
  static let examples = [
    Example("settle flush", "Everything."), Example("settle flush 'desk-lamp/*'", "One device."),
  ]
  static let parameters = patternParameters(isOptional: true)

  var pattern = "*"
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    let reply = try ask(ControlRequest(.flush, key: pattern))
    guard case .flushed(let count, _) = reply else { return .unexpected(reply) }
    show(count, "flushed")
    return .done
  }
}

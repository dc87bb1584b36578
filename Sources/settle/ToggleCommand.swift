// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

struct ToggleCommand: ChangeCommand {
  static let name = "toggle"
  static let summary = "Toggle a boolean property."
  static let examples = [
    Example("settle toggle desk-lamp/power", "Switch it on if it is off, and off if it is on."),
    Example("settle toggle desk-lamp/power --wait=sent", "Wait until the broker acknowledges it."),
  ]
  static let parameters = changeParameters([], keys: .keysOf("toggle"))

  var key = ""
  var options = ChangeOptions()
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode { try performOne(.toggle) }
}

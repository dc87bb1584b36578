// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

struct ToggleCommand: ChangeCommand {
  static let name = "toggle"
  static let summary = "Flip a property that is true or false."
  static let examples = [
    Example("settle toggle desk-lamp/power", "On if it was off."),
    Example("settle toggle desk-lamp/power --wait=sent", "Wait until the broker has it."),
  ]
  static let parameters = changeParameters([])

  var key = ""
  var options = ChangeOptions()
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode { try perform(.toggle) }
}

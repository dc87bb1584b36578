// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

struct SetCommand: ChangeCommand {
  static let name = "set"
  static let summary = "Set a property; of rapid changes only the last is sent."
  static let discussion = """
    The value is a number, true, false, a JSON object or list, or else a text; negative numbers \
    are values. The gateway gives it the property's type and refuses what does not fit, with the \
    allowed range.

    Without --wait the command ends as soon as the gateway has taken the change, and says nothing \
    on a pipe. With --wait it ends with 0 when the value was sent or confirmed, or need not be \
    sent; with 1 when it failed, expired, was superseded or cancelled; with 65 when it was refused.
    """
  static let examples = [
    Example("settle set desk-lamp/brightness 40", "Dim the lamp to 40."),
    Example("settle set boiler/target_temperature 21.5 --wait", "Wait until the boiler shows it."),
    Example("settle set desk-lamp/power off --now", "Switch it off without the quiet period."),
    Example("settle set desk-lamp/color '#ff8800'", "A color."),
    Example("settle set boiler/mode off --ttl 1h", "Good for an hour, should the boiler be away."),
  ]
  static let parameters = changeParameters([
    .argument("value", \.value, help: "The value to settle at.")
  ])

  var key = ""
  var value = ""
  var options = ChangeOptions()
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode { try perform(.set(ValueText.json(value))) }
}

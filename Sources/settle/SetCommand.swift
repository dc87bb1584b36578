// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

struct SetCommand: ChangeCommand {
  static let name = "set"
  static let summary = "Set a property; only the last of several rapid changes is sent."
  static let discussion = """
    VALUE is a number, true, false, a JSON object or array, or otherwise a text. Negative numbers \
    are values, not options. The gateway converts VALUE to the property's type, and refuses it \
    with the allowed range if that is not possible.

    Without --wait the command exits as soon as the gateway has accepted the change, and prints \
    nothing to a pipe. With --wait it exits with 0 when the value was sent or confirmed, or did \
    not need to be sent; with 1 when the command failed, expired, was superseded or cancelled; \
    with 65 when the change was refused.
    """
  static let examples = [
    Example("settle set desk-lamp/brightness 40", "Dim the lamp to 40."),
    Example(
      "settle set boiler/target_temperature 21.5 --wait",
      "Wait until the boiler reports it."
    ),
    Example("settle set desk-lamp/power off --now", "Switch it off without the quiet period."),
    Example("settle set desk-lamp/color '#ff8800'", "A color."),
    Example(
      "settle set boiler/mode off --ttl 1h",
      "Keep the value for an hour while the boiler is offline."
    ),
  ]
  static let parameters = changeParameters([
    .argument("value", \.value, completion: .values, help: "The value to set.")
  ])

  var key = ""
  var value = ""
  var options = ChangeOptions()
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode { try perform(.set(ValueText.json(value))) }
}

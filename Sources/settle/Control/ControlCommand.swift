// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

struct ControlCommand: GatewayCommand {
  static let name = "control"
  static let summary = "Step values on a full screen, and see each settle."
  static let discussion = """
    Arrow keys, + and - change values on the screen at once. A bar shows the quiet period, and \
    marks show what was sent, confirmed or refused. Press ? for all keys, q to quit.

    NO_COLOR switches colors off. Without a UTF-8 locale the marks are plain letters.
    """
  static let examples = [
    Example("settle control", "Every property."),
    Example(
      "settle control boiler",
      "Properties with this in their name; / filters on the screen."
    ),
  ]
  static let parameters: [Parameter<Self>] = [
    .argument(
      "pattern",
      \.pattern,
      isOptional: true,
      completion: .keys,
      help: "Show the properties that match: a part of the name, or a pattern with * and ?."
    ),
    socketParameter,
  ]

  var pattern = ""
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    let client = try connection.connect()
    let terminal: CursesTerminal
    do throws(CursesTerminal.Failure) {
      terminal = try CursesTerminal()
    } catch {
      Terminal.complain(error.message)
      return .unavailable
    }
    var loop = ScreenLoop(
      terminal: terminal,
      client: client,
      socket: connection.socket,
      filter: pattern
    )
    loop.run()
    return .done
  }
}

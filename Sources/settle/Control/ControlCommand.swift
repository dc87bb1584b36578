// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

struct ControlCommand: GatewayCommand {
  static let name = "control"
  static let summary = "Step values on a full screen, and see each settle."
  static let discussion = """
    Arrows and + and - change values at once on the screen; a bar shows the quiet period, and what \
    was sent, confirmed or refused is marked. Press ? for all keys, q to leave.

    NO_COLOR switches colors off. Without a UTF-8 locale the marks are plain letters.
    """
  static let examples = [
    Example("settle control", "Every property."),
    Example("settle control boiler", "Those with this in their name; / filters, too."),
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

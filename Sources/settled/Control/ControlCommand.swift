// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Values

/// `settle control`: the full screen, an ordinary client of the control socket.
struct ControlCommand: DaemonCommand {
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
      { $0.pattern = $1 },
      isOptional: true,
      completion: .keys,
      help: "Show the properties that match: a part of the name, or a pattern with * and ?."
    ),
    .option(
      "socket",
      { $0.socket = $1 },
      value: "PATH",
      completion: .files,
      help: SocketPath.help
    ),
  ]

  var pattern = ""
  var socket: String?

  func run() -> ExitCode {
    do throws(ClientError) {
      let client = try ControlClient(path: SocketPath.find(named: socket))
      return show(client)
    } catch {
      StandardError.write("settle: \(Excerpt.visible(error.description, keepingLines: true))")
      return .unavailable
    }
  }

  private func show(_ client: consuming ControlClient) -> ExitCode {
    do throws(CursesTerminal.Failure) {
      let terminal = try CursesTerminal()
      var loop = ScreenLoop(terminal: terminal, client: client, socket: socket, filter: pattern)
      loop.run()
      return .done
    } catch {
      StandardError.write("settle: \(error.message)")
      return .unavailable
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import JSON

struct LogCommand: PatternCommand {
  static let name = "log"
  static let summary = "Show the last commands of a property, and what became of each."
  static let discussion = """
    Shows up to ten commands of each property, the oldest first: when the last phase began, the \
    value, the phase, how many changes the command stands for, who asked, and the reason. A \
    command that was sent stays so when a newer value follows, which is its reason then. Changes \
    that were replaced before they were sent are no commands. The gateway keeps them in memory, up \
    to 65,536 in all.

    In a pipe the columns are separated by tabs: time, key, phase, value, changes collapsed, \
    source, reason; "-" means none.
    """
  static let examples = [
    Example("settle log", "The last commands of every property."),
    Example("settle log desk-lamp/brightness", "What happened to the lamp's brightness?"),
    Example("settle log 'boiler/*' --json", "The events of one device, for a script."),
  ]
  static let parameters = patternParameters(isOptional: true)

  var pattern = "*"
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    let reply = try ask(ControlRequest(.log, key: pattern))
    guard case .logged(let events, _) = reply else { return .unexpected(reply) }
    for event in events { EventLine.print(event, asJSON: connection.json, withTime: true) }
    return .done
  }
}

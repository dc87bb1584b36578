// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

struct WatchCommand: PatternCommand {
  static let name = "watch"
  static let summary = "Show every event, live, until interrupted."
  static let discussion = """
    In a pipe the columns are separated by tabs: time, key, phase, value, changes collapsed, \
    source, reason; "-" means none.
    """
  static let examples = [
    Example("settle watch", "Everything."),
    Example("settle watch 'boiler/*' --json", "Event objects of one device."),
  ]
  static let parameters = patternParameters(isOptional: true)

  var pattern = "*"
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    var client = try connection.connect()
    try client.send(ControlRequest(.watch, key: pattern))
    while true {
      let reply = try client.next(by: nil)
      guard case .watched(let event, _) = reply else { return .unexpected(reply) }
      if connection.json {
        StandardOutput.print(bytes: event.bytes)
      } else {
        StandardOutput.print(EventLine.text(event, withTime: true))
      }
    }
  }
}

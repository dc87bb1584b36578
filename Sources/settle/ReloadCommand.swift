// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Devices
import JSON

struct ReloadCommand: GatewayCommand {
  static let name = "reload"
  static let summary = "Read devices and policies again, keeping what is pending."
  static let discussion = """
    A mistake in a file is told with its place, nothing changes, and the exit code is 78.
    """
  static let examples = [Example("settle check && settle reload", "Look before.")]
  static let parameters: [Parameter<Self>] = connectionParameters

  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    let reply = try ask(ControlRequest(.reload, key: ""))
    guard case .reloaded(let summary, _) = reply else { return .unexpected(reply) }
    if connection.json {
      Terminal.print(JSONWriter.bytes(.object(["reloaded": summary])))
    } else if case .object(let members) = summary {
      let facts = members.map { "\($0.name) \(ValueText.text($0.value))" }
      Terminal.print((["reloaded"] + facts).joined(separator: ", "))
    } else {
      Terminal.print("reloaded")
    }
    return .done
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Values

struct WaitCommand: GatewayCommand {
  static let name = "wait"
  static let summary = "Wait until a property is quiet and its last command is done."
  static let discussion = """
    It does not matter who changed the property last. The events of the property are printed while \
    they come; if it is quiet already, nothing is printed.

    Exits with 0 when the last command ended sent, confirmed or unchanged, or there was none; with \
    VALUE, only if the property was set to it. Exits with 1 if the last command ended otherwise, \
    and with 75 when --timeout has passed.
    """
  static let examples = [
    Example("settle wait desk-lamp/brightness", "Wait for whatever is being done to it."),
    Example(
      "settle wait boiler/target_temperature 21.5 --timeout 30s",
      "Succeed only if the last command was to 21.5."
    ),
  ]
  static let parameters: [Parameter<Self>] =
    [
      .argument(
        "key",
        { $0.key = $1 },
        completion: .keys,
        help: "device/property, such as desk-lamp/brightness."
      ),
      .argument(
        "value",
        { $0.value = $1 },
        isOptional: true,
        completion: .values,
        help: "What the property should have been set to at the end."
      ),
      .option(
        "timeout",
        { $0.timeout = $1 },
        value: "D",
        help: "Stop waiting after D, such as 30s, with exit code 75."
      ),
    ] + connectionParameters

  var key = ""
  var value: String?
  var timeout: Duration?
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    let limit = timeout.map { Deadline(after: $0) }
    guard key.contains("/") else { return try explainBareName(key) }
    var client = try connection.connect()
    try client.send(ControlRequest(.watch, key: key))
    // The name that events and rows carry, which may differ from an alias.
    let reply = try client.ask(ControlRequest(.get, key: key))
    guard case .targets(let rows, _) = reply else { return .unexpected(reply) }
    guard let row = rows.first, rows.count == 1 else {
      Terminal.complain("one key is needed, and \(rows.count) match \(key)")
      return .badInput
    }
    var wait = SettledWait(
      [row.key],
      pattern: row.key,
      printer: EventPrinter(json: connection.json)
    )
    wait.expected = value.map { ValueText.json($0) }
    return try wait.run(on: client, by: limit)
  }
}

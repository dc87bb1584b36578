// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import JSON

struct DevicesCommand: GatewayCommand {
  static let name = "devices"
  static let summary = "List devices: their properties, whether they are online, their topic."
  static let discussion = """
    A device is "unknown" where no topic says whether it is online; values are sent to it all the \
    same.

    In a pipe the columns are separated by tabs: device, name, availability, topic, properties.
    """
  static let examples = [
    Example("settle devices", "All of them."),
    Example("settle devices '*lamp*' --json", "Some of them, one object per line."),
  ]
  static let parameters: [Parameter<Self>] =
    [
      .argument(
        "device",
        { $0.pattern = $1 },
        isOptional: true,
        help: "The id of a device, or a pattern: * any characters, ? one (default: *)."
      )
    ] + connectionParameters

  var pattern = "*"
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    let reply = try ask(ControlRequest(.devices, key: pattern))
    guard case .devices(let rows, _) = reply else { return .unexpected(reply) }
    if connection.json {
      for row in rows { StandardOutput.print(bytes: JSONWriter.bytes(row.json)) }
      return .done
    }
    var table = TextTable(["DEVICE", "NAME", "STATE", "TOPIC", "PROPERTIES"])
    for row in rows {
      let age = row.awayMilliseconds.map { " for \(AgeText.text($0))" } ?? ""
      table.rows.append([
        .init(row.id, .bold), .init(row.name),
        .init(
          row.availability.rawValue + age + (row.sleeps ? ", sleeps" : ""),
          Self.color(row.availability)
        ), .init(row.topic),
        .init(row.properties.joined(separator: ", ")),
      ])
    }
    table.print()
    return .done
  }

  private static func color(_ availability: DeviceRow.Availability) -> Terminal.Color? {
    switch availability {
    case .online: .green
    case .offline: .red
    case .unknown: .faint
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import JSON
import Values

struct DevicesCommand: GatewayCommand {
  static let name = "devices"
  static let summary = "List devices: their properties, whether they are online, their topic."
  static let discussion = """
    A device is "unknown" where no topic says whether it is online; values are sent to it all the \
    same. It is "unheard" while no report has come on any of its state topics since the gateway \
    started: it is off, or a topic in its device file is wrong.

    An area is written as in the device file or as one word: "Living room" or living-room.

    In a pipe the columns are separated by tabs: device, name, availability, topic, properties, \
    area.
    """
  static let examples = [
    Example("settle devices", "All of them."),
    Example("settle devices '*lamp*' --json", "Some of them, one object per line."),
    Example("settle devices --area hall", "Those in the hall."),
  ]
  static let parameters: [Parameter<Self>] =
    [
      .argument(
        "device",
        { $0.pattern = $1 },
        isOptional: true,
        help: "The id of a device, or a pattern: * any characters, ? one (default: *)."
      ),
      .option(
        "area",
        { $0.area = $1 },
        value: "AREA",
        completion: .keysOf("area"),
        help: "Only the devices and groups in this area."
      ),
    ] + connectionParameters

  var pattern = "*"
  var area: String?
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    let reply = try ask(ControlRequest(.devices, key: pattern))
    guard case .devices(var rows, _) = reply else { return .unexpected(reply) }
    if rows.isEmpty, pattern == "*" {
      Terminal.complain(#"there are none yet; "settle status" says how to add them"#)
    }
    if let area {
      let found = rows.filter { $0.isIn(area) }
      guard !found.isEmpty else { return refuse(area, among: rows) }
      rows = found
    }
    show(rows.map(\.json), or: table(of: rows))
    return .done
  }

  private func table(of rows: [DeviceRow]) -> TextTable {
    // On a terminal the area is beside the name, if there is one at all.
    let place = Terminal.isInteractive ? 2 : 5
    let hasAreas = !Terminal.isInteractive || rows.contains { $0.area != nil }
    var headings = ["DEVICE", "NAME", "STATE", "TOPIC", "PROPERTIES"]
    if hasAreas { headings.insert("AREA", at: place) }
    var table = TextTable(headings)
    for row in rows {
      let age = row.awayMilliseconds.map { " for \(AgeText.text($0))" } ?? ""
      var cells: [TextTable.Cell] = [
        .init(row.id, .bold), .init(row.name),
        .init(
          Self.state(row) + age + (row.sleeps ? ", sleeps" : ""),
          Self.color(row)
        ), .init(row.topic),
        .init(row.properties.joined(separator: ", ")),
      ]
      if hasAreas { cells.insert(.init(row.area ?? "-"), at: place) }
      table.rows.append(cells)
    }
    return table
  }

  /// Says which areas there are.
  private func refuse(_ area: String, among rows: [DeviceRow]) -> ExitCode {
    let areas = DeviceRow.areas(of: rows)
    let known = areas.map { Excerpt.of($0) }.joined(separator: ", ")
    let hint =
      Suggestion.nearest(to: area, in: areas).map { "did you mean '\(Excerpt.of($0))'?" }
      ?? (areas.isEmpty ? "no device has an area" : "areas: \(known)")
    Terminal.complain("no device is in '\(Excerpt.of(area))'; \(hint)")
    return .badInput
  }

  /// `unheard` hides that a device seems to be there, but not that it is away.
  private static func state(_ row: DeviceRow) -> String {
    row.isHeard || row.availability == .offline ? row.availability.rawValue : "unheard"
  }

  private static func color(_ row: DeviceRow) -> Terminal.Color? {
    switch row.availability {
    case .offline: .red
    case .online: row.isHeard ? .green : .yellow
    case .unknown: row.isHeard ? .faint : .yellow
    }
  }
}

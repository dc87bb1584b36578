// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

struct ReloadCommand: GatewayCommand {
  static let name = "reload"
  static let summary = "Read devices and policies anew; what is pending stays."
  static let discussion = """
    A file with a mistake is refused as a whole, the gateway goes on with what it had, and every \
    mistake is told; the exit code is 78 then. Also read anew are ttl, lanes, inputs and the time \
    allowed for a shutdown. What else the settings say counts after a restart, and a change there \
    is told.
    """
  static let examples = [
    Example("settle reload", "After device files were edited."),
    Example("settle check && settle reload", "Look at the mistakes first."),
  ]
  static let parameters = connectionParameters

  /// Large configurations take their time.
  private static let timeout = Duration.seconds(120)

  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    var client = try connection.connect()
    try client.send(ControlRequest(.reload, key: ""))
    let reply = try client.next(by: Deadline(after: Self.timeout))
    guard case .reloaded(let report, _) = reply else { return .unexpected(reply) }
    show(report, reply)
    return .done
  }

  private func show(_ report: ReloadReport, _ reply: ControlReply) {
    if connection.json { return StandardOutput.print(bytes: reply.line) }
    StandardOutput.print(
      "\(Self.counted(report.devices, "device")), \(Self.counted(report.keys, "key"))"
    )
    for key in report.added { StandardOutput.print("added    \(key)") }
    for key in report.removed { StandardOutput.print("removed  \(key)") }
    for key in report.changed { StandardOutput.print("changed  \(key)") }
    for warning in report.warnings { Terminal.complain(warning) }
    if !report.restart.isEmpty {
      let sections = report.restart.joined(separator: ", ")
      Terminal.complain("changed, but counts only after a restart: \(sections)")
    }
  }

  private static func counted(_ count: Int, _ what: String) -> String {
    "\(count) \(what)\(count == 1 ? "" : "s")"
  }
}

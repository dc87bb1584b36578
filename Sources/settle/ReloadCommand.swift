// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

struct ReloadCommand: GatewayCommand {
  static let name = "reload"
  static let summary = "Reload devices and policies; pending values stay."
  static let discussion = """
    If any file has a mistake, nothing changes, every mistake is reported, and the exit code is \
    78. ttl, lanes, inputs and the shutdown timeout are reloaded too. Other changed sections are \
    reported and apply after a restart. Standard error names the files that the gateway reads.
    """
  static let examples = [
    Example("settle reload", "After editing device files."),
    Example("settle check && settle reload", "Validate first."),
  ]
  static let parameters = connectionParameters

  /// Large configurations take long to read.
  private static let timeout = Duration.seconds(120)

  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    var client = try connection.connect()
    try client.send(ControlRequest(.reload, key: ""))
    let reply = try client.next(by: Deadline(after: Self.timeout))
    guard case .reloaded(let report, _) = reply else {
      guard connection.json, case .failure(let error, _) = reply else { return .unexpected(reply) }
      StandardOutput.print(bytes: reply.line)
      return .code(of: error)
    }
    show(report, reply)
    return .done
  }

  private func show(_ report: ReloadReport, _ reply: ControlReply) {
    if let files = report.files {
      StandardError.write("The gateway has read \(files.relative).")
    }
    if connection.json { return StandardOutput.print(bytes: reply.line) }
    StandardOutput.print(
      "\(CountText.text(report.devices, "device")), \(CountText.text(report.keys, "key"))"
    )
    for key in report.added { StandardOutput.print("added    \(key)") }
    for key in report.removed { StandardOutput.print("removed  \(key)") }
    for key in report.changed { StandardOutput.print("changed  \(key)") }
    for warning in report.warnings { Terminal.complain(warning) }
    if !report.restart.isEmpty {
      let sections = report.restart.joined(separator: ", ")
      Terminal.complain("changed sections that apply only after a restart: \(sections)")
    }
  }
}

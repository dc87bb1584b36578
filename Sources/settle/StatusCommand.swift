// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import JSON

struct StatusCommand: GatewayCommand {
  static let name = "status"
  static let summary = "Show how the gateway is, and what to do about each red line."
  static let discussion = """
    Shows the version, the connection to each broker and since when, devices that are offline, \
    what waits and what for, the journal, HTTP, counters, and every setting with the file, \
    variable or option that states it. Lines that begin with "!" are red: each is followed by what \
    to do.

    Without a gateway it shows what one would use and what was found: the sockets that were tried, \
    the settings, the mistakes in the files, and whether the broker answers.

    Exits with 0; with 1 if there is a red line; with 69 if no gateway answers.
    """
  static let examples = [
    Example("settle status", "Is everything well, and if not, why?"),
    Example("settle status --json | jq -r '.problems[].advice'", "What to do, for a script."),
  ]
  static let parameters: [Parameter<Self>] =
    connectionParameters + [
      .option(
        "config",
        { $0.config = $1 },
        value: "FILE",
        completion: .files,
        help: "The settings file to look at where no gateway answers; default: that of settle run."
      ),
      .option(
        "devices",
        { $0.devices = $1 },
        value: "DIR",
        completion: .directories,
        help: "The folder of device files to look at where no gateway answers."
      ),
    ]

  var config: String?
  var devices: String?
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    let path: String
    let reply: ControlReply
    do throws(ClientError) {
      path = try SocketPath.find(named: connection.socket)
      var client = try ControlClient(path: path)
      reply = try client.ask(ControlRequest(.status, key: ""))
    } catch {
      return withoutGateway()
    }
    switch reply {
    case .status(var report, _):
      let version = StatusAdvice.otherVersion(
        gateway: report.version,
        program: Release.description
      )
      if let version { report.problems.append(version) }
      show(report)
      return report.problems.isEmpty ? .done : .failed
    case .failure(let error, _) where ErrorCode(rawValue: error.code) == .unknownMember:
      var report = StatusReport(version: "unknown", isRunning: true)
      report.socket = path
      report.problems = [StatusAdvice.tooOld(socket: path, program: Release.description)]
      show(report)
      return .failed
    case .event, .watched, .recorded, .targets, .pending, .described, .flushed, .cancelled,
      .reloaded, .logged, .devices, .words, .previewed, .failure:
      return .unexpected(reply)
    }
  }

  private func show(_ report: StatusReport) {
    if connection.json { return StandardOutput.print(bytes: JSONWriter.bytes(report.json)) }
    for line in StatusText.lines(of: report, width: StandardOutput.columns ?? 100) {
      StandardOutput.print(Terminal.colored(line.text, Terminal.color(of: line.tone)))
    }
  }

  /// Runs `settled`, which reads the files and asks the broker.
  private func withoutGateway() -> ExitCode {
    var arguments: [String] = []
    if connection.json { arguments.append("--json") }
    if let socket = connection.socket { arguments.append("--socket=\(socket)") }
    if let config { arguments.append("--config=\(config)") }
    if let devices { arguments.append("--devices=\(devices)") }
    return Daemon.execute(Self.name, arguments)
  }
}

extension Terminal {
  /// The color of a line.
  fileprivate static func color(of tone: StatusText.Line.Tone) -> Color? {
    switch tone {
    case .plain: nil
    case .good: .green
    case .bad: .red
    case .advice: .yellow
    case .faint: .faint
    }
  }
}

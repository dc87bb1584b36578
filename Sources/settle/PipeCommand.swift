// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Glibc
import Values

struct PipeCommand: GatewayCommand {
  static let name = "pipe"
  static let summary = "Read changes from standard input, one JSON object per line."
  static let discussion = """
    Each line is a change, {"key":"desk-lamp/brightness","set":40}, with "step":5, "toggle":true, \
    "cancel":true or "flush":true in place of "set", and optionally "id", "source", "now":true, \
    "ttl":"1h", "wait":"sent", "wait":"confirmed" or "wait":"settled". With a device as "key", \
    "set" is an object of its properties, which change at one instant and have an answer each; so \
    do the values of a scene, {"scene":"evening"}.

    Each line is answered by one line on standard output: the change's event object, or \
    {"error":{"code":…,"message":…,"line":…},"id":…}. With "wait", every later phase follows. \
    Every answer has the number of its line as "line"; "flushed" and "cancelled" have their "key" \
    too. A bad line does not end the pipe. At the end of the input the changed keys are flushed, \
    and the command waits until their values are sent.

    Exits with 0; with 1 if a command failed or expired; with 65 if a line was refused; with 75 if \
    --timeout passed.
    """
  static let examples = [
    Example(
      "settle pipe < changes.ndjson",
      "Send a file of changes, and print the result of each line."
    ),
    Example(
      #"yes '{"key":"desk-lamp/brightness","step":1}' | head -200 | settle pipe"#,
      "200 steps, one command."
    ),
    Example("settle pipe --standalone < changes.ndjson", "Without a running gateway."),
  ]
  static let parameters: [Parameter<Self>] =
    [
      .flag(
        "standalone",
        { $0.isStandalone = true },
        help: "Run a gateway for the duration of the pipe instead of using the running one."
      ),
      .option(
        "config",
        { $0.config = $1 },
        value: "FILE",
        completion: .files,
        help: "The configuration file of a standalone pipe."
      ),
      .option(
        "devices",
        { $0.devices = $1 },
        value: "DIR",
        completion: .directories,
        help: "The folder with the device files of a standalone pipe."
      ),
      .option(
        "timeout",
        { $0.timeout = $1 },
        value: "D",
        help: "Wait at most D, such as 30s, after the end of the input, then exit with 75."
      ),
      .option(
        "source",
        { $0.source = $1 },
        value: "NAME",
        help: "The source of lines that name none (default: pipe)."
      ),
    ] + connectionParameters

  var isStandalone = false
  var config: String?
  var devices: String?
  var timeout: Duration?
  var source = "pipe"
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    if isStandalone { return standalone() }
    guard config == nil, devices == nil else {
      Terminal.complain(
        "--config and --devices require --standalone: a running gateway has its own"
      )
      return .usage
    }
    let session = PipeSession(source: source, idPrefix: PipeSession.freshPrefix())
    var runner = PipeRunner(session, client: try connection.connect(), input: STDIN_FILENO)
    let isPerson = isatty(STDERR_FILENO) == 1
    let isAlone = isPerson && !Terminal.isInteractive
    let report = runner.report(
      timeout: timeout,
      write: { StandardOutput.write($0) },
      isPerson: isPerson,
      show: isAlone ? { StandardError.show($0) } : nil
    )
    if let message = report.message { Terminal.complain(message) }
    return ExitCode(rawValue: report.exitCode) ?? .failed
  }

  /// Runs `settled`, which contains the gateway.
  private func standalone() -> ExitCode {
    guard connection.socket == nil else {
      Terminal.complain("--socket names a running gateway; --standalone runs its own")
      return .usage
    }
    var arguments: [String] = ["--source=\(source)"]
    if let config { arguments.append("--config=\(config)") }
    if let devices { arguments.append("--devices=\(devices)") }
    if let timeout { arguments.append("--timeout=\(DurationText.text(timeout))") }
    return Daemon.execute(Self.name, arguments)
  }
}

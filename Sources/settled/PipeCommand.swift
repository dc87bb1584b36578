// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Control
import Gateway
import GatewayCore
import Glibc
import Operations

/// `settle pipe --standalone`: a gateway that runs for the duration of the pipe.
///
/// The gateway runs on its event loop; a second thread sends the lines through its control socket,
/// which is in a private folder.
struct PipeCommand: ConfiguredCommand {
  static let name = "pipe"
  static let summary =
    "Read changes from standard input, with a gateway for the duration of the pipe."
  static let examples = [
    Example(
      "settle pipe --standalone < changes.ndjson",
      "Use the broker of the settings, without a running gateway."
    ),
    Example(
      "settle pipe --standalone --devices ./devices --timeout 30s < changes.ndjson",
      "Use other device files, and wait half a minute at most."
    ),
  ]
  static let parameters: [Parameter<Self>] =
    configurationParameters + [
      .option(
        "timeout",
        { $0.timeout = $1 },
        value: "D",
        help: "Wait at most D after the end of the input."
      ),
      .option(
        "source",
        { $0.source = $1 },
        value: "NAME",
        help: "The source of lines that name none."
      ),
    ]

  var config: String?
  var devices: String?
  var timeout: Duration?
  var source = "pipe"

  func run() -> ExitCode {
    guard let folder = try? TemporaryFolder.make("settle-pipe") else {
      complain("cannot create a private folder: \(unsafe String(cString: strerror(errno)))")
      return .unavailable
    }
    defer { TemporaryFolder.remove(folder) }
    var overrides = named
    overrides.socket = folder + "/settle.sock"
    var configuration: LoadedConfiguration
    do throws(ConfigurationFailure) {
      configuration = try ConfigurationLoader.load(overrides, environment: Environment.all)
    } catch {
      for problem in error.problems { StandardError.write(problem.description) }
      return .badConfiguration
    }
    configuration.gateway = configuration.gateway.besideAnother(named: "pipe-\(getpid())")
    for warning in configuration.warnings { StandardError.write(warning.description) }
    do throws(OperationsError) {
      return try serve(configuration)
    } catch {
      complain("the gateway cannot start: \(error.description)")
      return .unavailable
    }
  }

  private func serve(_ configuration: LoadedConfiguration) throws(OperationsError) -> ExitCode {
    let loop = try EventLoop()
    let gateway = try GatewayHost(
      configuration: configuration,
      loop: loop,
      log: Logger(level: .warning)
    )
    var exitCode = ExitCode.done
    let leave = {
      gateway.beginShutdown { report in
        if report.exitCode != 0 {
          StandardError.write(report.description)
          if exitCode == .done { exitCode = .failed }
        }
        loop.stop()
      }
    }
    for signal in [SIGTERM, SIGINT] { try loop.onSignal(signal) { leave() } }
    try gateway.start()
    let work = try BackgroundWork<PipeReport>(named: "pipe", loop: loop) { report in
      if let message = report.message { complain(message) }
      exitCode = ExitCode(rawValue: report.exitCode) ?? .failed
      leave()
    }
    let (path, timeout, source) = (gateway.socketPath ?? "", timeout, source)
    try work.begin { Self.pipe(through: path, source: source, timeout: timeout) }
    loop.run()
    withExtendedLifetime(work) {}
    return exitCode
  }

  private static func pipe(through path: String, source: String, timeout: Duration?) -> PipeReport {
    let isPerson = isatty(STDERR_FILENO) == 1
    let isAlone = isPerson && isatty(STDOUT_FILENO) == 0
    do throws(ClientError) {
      let session = PipeSession(source: source, idPrefix: PipeSession.freshPrefix())
      var runner = PipeRunner(session, client: try ControlClient(path: path), input: STDIN_FILENO)
      return runner.report(
        timeout: timeout,
        write: { StandardOutput.write($0) },
        isPerson: isPerson,
        show: isAlone ? { StandardError.show($0) } : nil
      )
    } catch {
      return PipeReport(exitCode: ExitCode.unavailable.rawValue, message: "\(error)")
    }
  }
}

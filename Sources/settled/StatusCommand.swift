// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Control
import Devices
import Gateway
import JSON
import Operations

/// `settle status` without a gateway: what one would use, and what is found.
struct StatusCommand: ConfiguredCommand {
  static let name = "status"
  static let summary = "Show what a gateway would use, and what is found."
  static let examples = [
    Example("settle status --config settle.yaml", "Look at these settings where none runs."),
    Example("settled status --json", "One object, for a script."),
  ]
  static let parameters: [Parameter<Self>] =
    configurationParameters + [
      .option(
        "socket",
        { $0.socket = $1 },
        value: "PATH",
        completion: .files,
        help: SocketPath.help
      ), .flag("json", { $0.json = true }, help: "Print one JSON object."),
    ]

  var config: String?
  var devices: String?
  var socket: String?
  var json = false

  func run() -> ExitCode {
    let (loaded, mistakes) = ConfigurationLoader.inspect(named, environment: Environment.all)
    var report = StatusReport(version: Release.description, isRunning: false)
    report.files = GatewayFiles(
      settings: loaded.gateway.settingsFile,
      devices: loaded.gateway.devicesDirectory
    )
    report.settings = loaded.settings.map(StatusReport.Setting.init)
    report.mistakes = mistakes.map(\.description)
    report.warnings = loaded.warnings.map(\.description)
    report.devices.count = loaded.registry.deviceNumbers.count
    report.devices.keys = loaded.registry.keyCount
    if let answer = look(for: loaded.gateway.socket, &report) {
      show(answer)
      return answer.problems.isEmpty ? .done : .failed
    }
    // A broker that a mistake hides is not the one that a gateway would use.
    let isKnown = !mistakes.contains {
      $0.file == loaded.gateway.settingsFile || $0.file.hasPrefix("$")
    }
    if isKnown { probe(loaded.gateway, &report) }
    report.problems = StatusAdvice.problems(in: report)
    show(report)
    return .unavailable
  }

  /// Looks for a gateway at the socket that clients use, and then elsewhere; returns what one says
  /// that answers after all.
  private func look(for settled: String?, _ report: inout StatusReport) -> StatusReport? {
    do throws(ClientError) {
      let path = try SocketPath.find(named: socket)
      report.socket = path
      report.socketFailure = "the gateway at \(path) does not answer"
      return try RunningGateway.status(at: path).report
    } catch {
      switch error {
      case .closed, .timedOut, .unreadable: break
      case .noSocket, .notRunning, .denied, .pathTooLong, .system:
        report.socketFailure = error.description
      }
    }
    for path in [settled].compactMap(\.self) + SocketPath.usual() where path != report.socket {
      guard (try? ControlClient(path: path)) != nil else { continue }
      report.otherSockets.append(path)
    }
    return nil
  }

  private func probe(_ settings: GatewayConfiguration, _ report: inout StatusReport) {
    do throws(OperationsError) {
      report.brokers = try BrokerReach(settings).run()
    } catch {
      report.warnings.append("the broker was not asked: \(error.description)")
    }
  }

  private func show(_ report: StatusReport) {
    if json { return StandardOutput.print(bytes: JSONWriter.bytes(report.json)) }
    for line in StatusText.lines(of: report, width: StandardOutput.columns ?? 100) {
      StandardOutput.print(line.text)
    }
  }
}

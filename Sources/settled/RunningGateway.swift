// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Control
import Glibc
import LastOut
import Operations
import Values

/// The gateway that clients of this environment talk to.
enum RunningGateway {
  /// Why it is not known which files a gateway reads that seems to run.
  struct Unknown: Error {
    let reason: String
  }

  /// How long it may take to answer.
  static let patience = Duration.seconds(2)

  /// The state of the gateway at a socket, and the user who runs it.
  static func status(
    at path: String
  ) throws(ClientError) -> (report: StatusReport, user: UInt32?) {
    var client = try ControlClient(path: path)
    try client.send(ControlRequest(.status, key: ""))
    let reply = try client.next(by: Deadline(after: patience))
    guard case .status(let report, _) = reply else {
      throw .unreadable(String(decoding: reply.line, as: UTF8.self))
    }
    return (report, client.peer)
  }

  /// What it reads its settings and devices from; `nil` without a gateway that reads files.
  ///
  /// Paths of the result start at the working folder where they can.
  static func report() throws(Unknown) -> StatusReport? {
    let answer: (report: StatusReport, user: UInt32?)
    do throws(ClientError) {
      answer = try status(at: SocketPath.find(named: nil))
    } catch {
      switch error {
      case .noSocket, .notRunning: return nil
      case .denied, .pathTooLong, .system, .closed, .timedOut, .unreadable:
        throw Unknown(reason: "the running gateway does not say which files it reads: \(error)")
      }
    }
    var report = answer.report
    guard let files = report.files else { return nil }
    if let path = files.strange(to: geteuid(), saidBy: answer.user) {
      throw Unknown(
        reason: "the running gateway names \(Excerpt.of(path)), which belongs neither to root nor"
          + " to the user who runs it"
      )
    }
    report.files = files.relative
    return report
  }
}

extension ConfiguredCommand {
  /// The files that the options name.
  var named: ConfigurationLoader.Overrides {
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = config
    overrides.devices = devices
    return overrides
  }

  /// The files that the options name; without `--config` and `SETTLE_CONFIG`, those of the running
  /// gateway, which standard error names.
  ///
  /// A running gateway with the same settings may import into a folder of its own, which counts.
  func overrides() throws(RunningGateway.Unknown) -> ConfigurationLoader.Overrides {
    var overrides = named
    if let path = config ?? Environment["SETTLE_CONFIG"], !path.isEmpty {
      let files = (try? RunningGateway.report())?.files
      let settings = files?.settings.map { WorkingFolder.absolute($0) }
      if settings == WorkingFolder.absolute(path) {
        overrides.stateDevices = files?.stateDevices
      }
      return overrides
    }
    guard let report = try RunningGateway.report(), let files = report.files else {
      return overrides
    }
    overrides.config = files.settings
    overrides.stateDevices = files.stateDevices
    // A folder that the settings name, or do not name, is found again.
    let origin = report.setting("devices")?.origin
    let isStated = files.settings == nil || ["--devices", "SETTLE_DEVICES"].contains(origin)
    if isStated, devices == nil, Environment["SETTLE_DEVICES"]?.isEmpty ?? true {
      overrides.devices = files.devices
    }
    let used = GatewayFiles(
      settings: files.settings,
      devices: devices ?? Environment["SETTLE_DEVICES"] ?? files.devices,
      stateDevices: files.stateDevices
    )
    complain("using the files of the running gateway: \(used)")
    return overrides
  }
}

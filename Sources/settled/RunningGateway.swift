// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Control
import LastOut
import Operations

/// The gateway that clients of this environment talk to.
enum RunningGateway {
  /// How long it may take to answer.
  static let patience = Duration.seconds(2)

  /// The state of the gateway at a socket.
  static func status(at path: String) throws(ClientError) -> StatusReport? {
    var client = try ControlClient(path: path)
    try client.send(ControlRequest(.status, key: ""))
    let reply = try client.next(by: Deadline(after: patience))
    guard case .status(let report, _) = reply else { return nil }
    return report
  }

  /// What it reads its settings and devices from; `nil` without a gateway that says so.
  ///
  /// Paths of the result start at the working folder where they can.
  static func report() throws(ClientError) -> StatusReport? {
    do throws(ClientError) {
      guard var report = try status(at: SocketPath.find(named: nil)) else { return nil }
      report.files = report.files?.relative
      return report.files == nil ? nil : report
    } catch {
      switch error {
      case .noSocket, .notRunning, .denied: return nil
      case .pathTooLong, .system, .closed, .timedOut, .unreadable: throw error
      }
    }
  }
}

extension ConfiguredCommand {
  /// The files that the options name; without `--config` and `SETTLE_CONFIG`, those of the running
  /// gateway, which standard error names.
  func overrides() -> ConfigurationLoader.Overrides {
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = config
    overrides.devices = devices
    guard config == nil, Environment["SETTLE_CONFIG"]?.isEmpty ?? true else { return overrides }
    do throws(ClientError) {
      guard let report = try RunningGateway.report(), let files = report.files else {
        return overrides
      }
      overrides.config = files.settings
      // A folder that the settings name, or do not name, is found again.
      let origin = report.setting("devices")?.origin
      let isStated = files.settings == nil || ["--devices", "SETTLE_DEVICES"].contains(origin)
      if isStated, devices == nil, Environment["SETTLE_DEVICES"]?.isEmpty ?? true {
        overrides.devices = files.devices
      }
      let used = GatewayFiles(
        settings: files.settings,
        devices: devices ?? Environment["SETTLE_DEVICES"] ?? files.devices
      )
      complain("using the files of the running gateway: \(used)")
    } catch {
      complain("the running gateway does not say which files it reads: \(error)")
    }
    return overrides
  }
}

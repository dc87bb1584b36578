// Settle
// SPDX-License-Identifier: Apache-2.0

import Control

/// What is in the way of a command that is waited for.
enum Hindrance {
  /// Asks the gateway how it is.
  static let question: ControlRequest = {
    var request = ControlRequest(.status, key: "")
    request.id = "settle-hindrance"
    return request
  }()

  /// Says on standard error what is in the way, if anything is.
  static func show(_ report: StatusReport, of keys: some Sequence<String>) -> String? {
    let text = report.hindrance(of: keys)
    if let text { Terminal.complain("waiting: \(text)") }
    return text
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Control

/// What is in the way of a command that is waited for.
enum Obstacle {
  /// Asks the gateway about the device of a key.
  static func question(about key: String) -> ControlRequest {
    ControlRequest(.devices, key: String(key.prefix { $0 != "/" }))
  }

  /// Says on standard error what is in the way, if anything is.
  static func show(_ rows: [DeviceRow]) -> String? {
    let text = rows.first?.obstacle
    if let text { Terminal.complain("waiting: \(text)") }
    return text
  }
}

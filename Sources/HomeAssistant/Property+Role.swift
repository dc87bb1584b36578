// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Values

/// What a property is for.
extension Property {
  /// Whether the identifier or an alias is one of `names`.
  func isCalled(_ names: Set<String>) -> Bool {
    names.contains(id) || aliases.contains { names.contains($0) }
  }

  /// Whether it locks and unlocks something; the buttons of a device are none.
  var isLock: Bool {
    guard kind == .boolean else { return false }
    if let deviceClass { return deviceClass == "lock" }
    let words = id.lowercased().split { $0 == "_" || $0 == "-" }
    return wire.on?.string?.lowercased() == "lock" && words.first == "lock"
      || isCalled(["lock", "locked"])
  }

  /// Whether it sets up its device, rather than being what the device is for.
  ///
  /// Beside a lamp, fan, cover or thermostat everything does but switches and locks of their own;
  /// elsewhere the name says so.
  func isSetting(besideMain: Bool) -> Bool {
    let words = id.lowercased().split { $0 == "_" || $0 == "-" }
    if words.contains(where: { Self.settingWords.contains($0) }) { return true }
    guard besideMain else { return false }
    return !isLock && !["power", "state", "on"].contains(words.first)
  }

  /// Words in the names of settings, as bridges name them.
  private static let settingWords: Set<Substring> = [
    "backlight", "behavior", "calibration", "child", "identify", "indicator", "led", "memory",
    "options", "sensitivity", "startup", "threshold", "timeout",
  ]
}

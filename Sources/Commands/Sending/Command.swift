// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import Values

/// A value that has settled, and is sent or about to be.
struct Command {
  var change: PendingChange
  /// How many earlier changes it stands for.
  var collapsed = 0
  /// Which attempt this is, counted from one; those after a lost connection are included.
  var attempt = 1
  /// How many attempts were made because no confirmation came.
  var retries = 0
  /// Whether it overtakes others and is sent even if the device seems to have the value.
  var isUrgent = false

  var value: Value { change.value }

  /// Whether an earlier attempt may have reached the device.
  var isRepeated: Bool { attempt > 1 }

  /// The next attempt; `unconfirmed` states that the one before was not confirmed in time.
  func repeated(unconfirmed: Bool) -> Command {
    var command = self
    command.attempt += 1
    if unconfirmed { command.retries += 1 }
    return command
  }

  /// How much longer the device may take because of the option `transition`, which is in seconds.
  var transitionTime: Duration {
    guard let members = change.members else { return .zero }
    var longest = 0.0
    for member in members where member.name == "transition" {
      longest = max(longest, member.value.double ?? 0)
    }
    return .milliseconds(Int64(min(longest, 86_400) * 1000))
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import LastOut
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

/// Momentary commands behind the first one of their key, in the order in which they were accepted.
///
/// A value replaces the one before it, so the send queue holds one command of a key. Presses of a
/// button do not replace each other: the others wait here, and the next one moves up when the first
/// has left.
struct WaitingActions {
  /// How many actions of one key may wait, the first one included.
  static let limit = 32

  /// No entry is empty.
  private var actions: [KeyIndex: [Command]] = [:]

  @inline(__always)
  var isEmpty: Bool { actions.isEmpty }

  /// The keys that have several actions, and how many of them wait behind the first.
  var counts: [(key: KeyIndex, count: Int)] { actions.map { ($0.key, $0.value.count) } }

  /// How many actions wait behind the first one of `key`.
  func count(behind key: KeyIndex) -> Int { actions.isEmpty ? 0 : actions[key]?.count ?? 0 }

  mutating func append(_ command: Command, for key: KeyIndex) {
    actions[key, default: []].append(command)
  }

  /// Removes and returns the oldest action of `key`.
  mutating func popFirst(of key: KeyIndex) -> Command? {
    guard let first = actions[key]?.removeFirst() else { return nil }
    if actions[key]?.isEmpty == true { actions[key] = nil }
    return first
  }
}

/// A command that was handed to MQTT.
struct InFlightCommand {
  enum Stage {
    /// The broker has not acknowledged it.
    case sending
    /// The broker has acknowledged it; the device has not shown the value.
    case sent
  }

  let command: Command
  /// The number of the message, which a device's reply repeats.
  let message: Int64
  /// How much longer a confirmation may take, by the slowest command of the message.
  let transitionTime: Duration
  /// How long after its last progress the device is at rest; `nil` for a key that does not travel.
  let restTime: Duration?
  var stage = Stage.sending
  /// The device shows the value already, while the stage is still `sending`.
  var isShown = false
  /// The device has accepted the value already, while the stage is still `sending`.
  var isAccepted = false
  /// Whether the message of a group carried it, which nobody had asked for: the mesh does not
  /// acknowledge it for each device, so it may be sent once more, alone.
  var isCarried = false
  /// Whether it is not sent again for want of a confirmation: a command that was to leave after it
  /// has left.
  var isOvertaken = false
  /// Why the device refused the value, while the stage is still `sending`.
  var refusal: String?
  /// Whether it ended while the stage was `sending`: nothing of it is emitted any more.
  var isEnded = false
}

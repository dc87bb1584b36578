// Settle
// SPDX-License-Identifier: Apache-2.0

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
  /// Whether it is not sent again for want of a confirmation: a command that was to leave after it
  /// has left.
  var isOvertaken = false
  /// Why the device refused the value, while the stage is still `sending`.
  var refusal: String?
  /// Whether it ended while the stage was `sending`: nothing of it is emitted any more.
  var isEnded = false

  init(_ command: Command, message: Int64, transitionTime: Duration, restTime: Duration?) {
    self.command = command
    self.message = message
    self.transitionTime = transitionTime
    self.restTime = restTime
  }
}

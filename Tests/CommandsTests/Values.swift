// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Values

@testable import Commands

/// Keys, moments, changes and commands for tests of single parts of the machine.
extension KeyIndex {
  static let first = KeyIndex(0)
  static let second = KeyIndex(1)
}

extension Moment {
  /// The moment `milliseconds` after the start of a test.
  static func at(_ milliseconds: Int) -> Moment {
    Moment(nanoseconds: 1_000_000_000).advanced(by: .milliseconds(milliseconds))
  }
}

extension PendingChange {
  static func of(
    _ value: Value,
    number: UInt64 = 1,
    expiresAt: Moment = .at(60_000),
    origin: ChangeOrigin? = nil
  ) -> PendingChange {
    PendingChange(
      value: value,
      number: number,
      acceptedAt: .at(0),
      expiresAt: expiresAt,
      origin: origin
    )
  }
}

extension Command {
  static func of(_ value: Value, number: UInt64 = 1, expiresAt: Moment = .at(60_000)) -> Command {
    Command(change: .of(value, number: number, expiresAt: expiresAt))
  }
}

extension InFlightCommand {
  /// A command of a key that travels and is at rest after 5 s, unless told otherwise.
  static func of(
    _ command: Command,
    message: Int64,
    transitionTime: Duration = .zero,
    restTime: Duration? = .seconds(5)
  ) -> InFlightCommand {
    InFlightCommand(
      command: command,
      message: message,
      transitionTime: transitionTime,
      restTime: restTime
    )
  }
}

extension Delivery.Verdict {
  /// The verdict in words, such as `confirmed 40` or `failed 40: no`.
  var text: String {
    switch self {
    case .none: "none"
    case .ended(let command, let phase, let reason):
      "\(phase) \(command.value.bareText)\(reason.map { ": \($0)" } ?? "")"
    case .repeated(let command): "attempt \(command.attempt) of \(command.value.bareText)"
    }
  }
}

extension Registry.Entry {
  /// The entry of a property that is the only one of its device.
  static func of(_ property: Property) -> Registry.Entry {
    Registry([.of("d", [property])])[.first]
  }
}

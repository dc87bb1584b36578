// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import JSON
import Values

/// A command about all keys that match a pattern: `get`, `pending`, `flush`, `cancel`, `watch`.
protocol PatternCommand: GatewayCommand {
  var pattern: String { get set }
}

extension PatternCommand {
  /// The parameters that all these commands share; the default pattern is `*`.
  static func patternParameters(isOptional: Bool) -> [Parameter<Self>] {
    [
      .argument(
        "pattern",
        { $0.pattern = $1 },
        isOptional: isOptional,
        completion: .keys,
        help: "A key, a device, or a pattern: * any characters, ? one"
          + (isOptional ? " (default: *)." : ".")
      )
    ] + connectionParameters
  }

  /// Prints the number of keys: `flushed 3`, or `{"flushed":3}`.
  func show(_ count: Int, _ done: String) {
    StandardOutput.print(connection.json ? #"{"\#(done)":\#(count)}"# : "\(done) \(count)")
  }
}

struct FlushCommand: PatternCommand {
  static let name = "flush"
  static let summary = "Send pending values now instead of waiting until their keys are quiet."
  static let examples = [
    Example("settle flush", "Everything."), Example("settle flush 'desk-lamp/*'", "One device."),
  ]
  static let parameters = patternParameters(isOptional: true)

  var pattern = "*"
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    let reply = try ask(ControlRequest(.flush, key: pattern))
    guard case .flushed(let count, _) = reply else { return .unexpected(reply) }
    show(count, "flushed")
    return .done
  }
}

struct CancelCommand: PatternCommand {
  static let name = "cancel"
  static let summary = "Drop pending values without sending them."
  static let examples = [
    Example("settle cancel desk-lamp/brightness", "One key."),
    Example("settle cancel '*'", "Everything that is pending."),
  ]
  static let parameters = patternParameters(isOptional: false)

  var pattern = ""
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    let reply = try ask(ControlRequest(.cancel, key: pattern))
    guard case .cancelled(let count, _) = reply else { return .unexpected(reply) }
    show(count, "cancelled")
    return .done
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Devices
import JSON

/// A command about all keys that a pattern names: `get`, `pending`, `flush`, `cancel`, `watch`.
protocol PatternCommand: GatewayCommand {
  var pattern: String { get set }
}

extension PatternCommand {
  /// The rows that all these commands share; left out, the pattern is `*`.
  static func patternParameters(isOptional: Bool) -> [Parameter<Self>] {
    [
      .argument(
        "pattern",
        \.pattern,
        isOptional: isOptional,
        completion: .keys,
        help: "A key, or a pattern: * any characters, ? one"
          + (isOptional ? " (default: *)." : ".")
      )
    ] + connectionParameters
  }

  /// Prints how many keys it was: `flushed 3`, or `{"flushed":3}`.
  func show(_ count: Int, _ done: String) {
    StandardOutput.print(connection.json ? #"{"\#(done)":\#(count)}"# : "\(done) \(count)")
  }

  /// Prints rows: one object per line where JSON is asked for, else the table.
  func show(_ objects: [JSONValue], or table: TextTable) {
    guard connection.json else { return table.print() }
    for object in objects { StandardOutput.print(bytes: JSONWriter.bytes(object)) }
  }
}

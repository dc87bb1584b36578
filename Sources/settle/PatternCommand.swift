// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Values
import JSON

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

  /// Prints rows: one object per line with `--json`, otherwise the table.
  func show(_ objects: [JSONValue], or table: TextTable) {
    guard connection.json else { return table.print() }
    for object in objects { StandardOutput.print(bytes: JSONWriter.bytes(object)) }
  }
}

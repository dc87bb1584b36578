// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
package import LastOut

/// One value that the queue released on the virtual clock.
package struct TimelineRun: Hashable, Sendable {
  package var at: Moment
  package var key: String
  package var value: JSONValue
  /// The number of changes that were replaced since the key's last run or cancellation.
  package var collapsed: Int

  package init(at: Moment, key: String, value: JSONValue, collapsed: Int) {
    self.at = at
    self.key = key
    self.value = value
    self.collapsed = collapsed
  }

  /// The value as JSON text.
  var valueText: String { JSONWriter.text(value) }

  /// Appends the run as one line: `{"at":300,"key":"…","value":40,"collapsed":2}`, `at` in
  /// milliseconds.
  package func appendLine(to output: inout [UInt8]) {
    output.append(contentsOf: "{\"at\":".utf8)
    let (milliseconds, rest) = at.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000)
    if rest == 0 {
      output.append(contentsOf: String(milliseconds).utf8)
    } else {
      JSONWriter.appendNumber(Double(at.nanoseconds) / 1_000_000, to: &output)
    }
    output.append(contentsOf: ",\"key\":".utf8)
    JSONWriter.appendString(key, to: &output)
    output.append(contentsOf: ",\"value\":".utf8)
    JSONWriter.append(value, to: &output)
    output.append(contentsOf: ",\"collapsed\":".utf8)
    output.append(contentsOf: String(collapsed).utf8)
    output.append(contentsOf: "}\n".utf8)
  }
}

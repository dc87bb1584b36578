// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices

/// Reads JSON text through jansson: any value at the top, depth and size bounded, positions in errors.
package enum JSONParser {
  package static func parse(_ bytes: Span<UInt8>) throws(JSONParseError) -> JSONValue { fatalError("skeleton") }
  package static func parse(_ text: String) throws(JSONParseError) -> JSONValue { fatalError("skeleton") }
}

package struct JSONParseError: Error, Hashable, Sendable {
  package let message: String
  package let line: Int
  package let column: Int
  package init(message: String, line: Int, column: Int) {
    self.message = message
    self.line = line
    self.column = column
  }
  package var description: String { "\(message) (line \(line), column \(column))" }
}

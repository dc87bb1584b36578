// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// The reports of a property that could not be read.
package struct UnreadableRow: Hashable, Sendable {
  package var count: UInt64
  /// The newest, shortened.
  package var last: String

  package init(count: UInt64, last: String) {
    self.count = count
    self.last = last
  }

  /// Reads a row; `nil` without a count.
  package init?(_ json: JSONValue) {
    guard let count = json["count"]?.count else { return nil }
    self.init(count: UInt64(clamping: count), last: json["last"]?.string ?? "")
  }

  package var members: [JSONValue.Member] {
    [.init("count", .integer(Int64(clamping: count))), .init("last", .string(last))]
  }

  var json: JSONValue { .object(members) }
}

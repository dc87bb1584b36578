// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// Writes a reply of rows, such as `{"get":[…],"id":…}`, row by row.
///
/// The parts that the three methods append are one line, which is complete after ``end(to:)``.
package struct RowListText: Sendable {
  private let name: String
  private let id: JSONValue?
  private var isEmpty = true

  /// A list that is called `name`, in the reply to the request with `id`.
  package init(_ name: String, id: JSONValue?) {
    self.name = name
    self.id = id
  }

  package func begin(to output: inout [UInt8]) {
    output.append(UInt8(ascii: "{"))
    JSONWriter.append(.string(name), to: &output)
    output.append(contentsOf: ":[".utf8)
  }

  package mutating func append(_ row: JSONValue, to output: inout [UInt8]) {
    if !isEmpty { output.append(UInt8(ascii: ",")) }
    isEmpty = false
    JSONWriter.append(row, to: &output)
  }

  package func end(to output: inout [UInt8]) {
    output.append(contentsOf: #"],"id":"#.utf8)
    JSONWriter.append(id ?? .null, to: &output)
    output.append(UInt8(ascii: "}"))
  }
}

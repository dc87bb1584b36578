// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

extension JSONValue {
  /// Whether both say the same in a device file: numbers by their value, members in any order.
  func means(_ other: JSONValue) -> Bool {
    if let left = double, let right = other.double { return left == right }
    switch (self, other) {
    case (.array(let left), .array(let right)):
      return left.count == right.count && zip(left, right).allSatisfy { $0.means($1) }
    case (.object(let left), .object(let right)):
      return left.count == right.count
        && left.allSatisfy { member in other[member.name]?.means(member.value) ?? false }
    default: return self == other
    }
  }
}

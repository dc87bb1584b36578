// Settle
// SPDX-License-Identifier: Apache-2.0

/// One of the parts into which the devices of a cluster are divided; counts from zero.
///
/// Each partition is driven by one member at a time.
package struct Partition: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let number: Int

  package init(_ number: Int) { self.number = number }

  /// The partition of a device, a route or an input: FNV-1a with 64 bits over the UTF-8 of its
  /// name, modulo `count`.
  ///
  /// Source: draft-eastlake-fnv, section 5. It never changes for the life of a cluster.
  package init(of name: String, count: Int) {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in name.utf8 {
      hash ^= UInt64(byte)
      hash &*= 0x100_0000_01b3
    }
    number = Int(hash % UInt64(count))
  }

  package static func < (left: Partition, right: Partition) -> Bool { left.number < right.number }

  package var description: String { "\(number)" }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// How many partitions each member should have, and who takes which.
///
/// Every member calculates this from what it sees and acts for itself alone; compare-and-set
/// decides where two see different things.
package struct Assignment: Hashable, Sendable {
  /// What each member that takes partitions should have in the end.
  package private(set) var shares: [String: Int] = [:]
  /// Who should take the partitions that nobody has.
  package private(set) var takers: [Partition: String] = [:]

  /// - Parameters:
  ///   - members: Those that take partitions.
  ///   - owners: Of each partition its owner, by number; `nil` where it is free. An owner that is
  ///     not in `members` keeps what it has until it gives it back or is evicted.
  package init(members: some Sequence<String>, owners: [String?]) {
    var counts: [String: Int] = [:]
    for member in members { counts[member] = 0 }
    guard !counts.isEmpty else { return }
    for owner in owners { if let owner, counts[owner] != nil { counts[owner, default: 0] += 1 } }
    // Who has most keeps one more, so that as few as possible move.
    let ordered = counts.sorted { $0.value == $1.value ? $0.key < $1.key : $0.value > $1.value }
    let (least, rest) = owners.count.quotientAndRemainder(dividingBy: ordered.count)
    for (place, member) in ordered.enumerated() {
      shares[member.key] = place < rest ? least + 1 : least
    }
    var free = owners.indices.filter { owners[$0] == nil }.makeIterator()
    for member in shares.keys.sorted() {
      for _ in 0..<max(0, (shares[member] ?? 0) - (counts[member] ?? 0)) {
        guard let number = free.next() else { return }
        takers[Partition(number)] = member
      }
    }
  }
}

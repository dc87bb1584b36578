// Settle
// SPDX-License-Identifier: Apache-2.0

/// How many partitions each member should have, and who takes which.
///
/// Every member calculates this from what it sees and acts for itself alone; compare-and-set
/// decides where two see different things.
package struct Assignment: Hashable, Sendable {
  /// What each member that takes partitions should have in the end.
  package private(set) var shares: [String: Int] = [:]
  /// Who should take the partitions that nobody has; none of those that nobody can read.
  package private(set) var takers: [Partition: String] = [:]
  /// The partitions that should get another owner; none while some are free.
  ///
  /// Theirs has more than its share, or takes none, and a member with less than its share can read
  /// them.
  package private(set) var movable: Set<Partition> = []

  /// - Parameters:
  ///   - members: Those that take partitions.
  ///   - unreadable: The partitions whose logs a member cannot read; it gets none of them.
  ///   - owners: Of each partition its owner, by number; `nil` where it is free. An owner that is
  ///     not in `members` keeps what it has until it gives it back or is evicted.
  package init(
    members: some Sequence<String>,
    unreadable: [String: Set<Partition>] = [:],
    owners: [String?]
  ) {
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
    let names = shares.keys.sorted()
    func spare(_ member: String) -> Int { (shares[member] ?? 0) - (counts[member] ?? 0) }
    func canRead(_ member: String, _ partition: Partition) -> Bool {
      !(unreadable[member]?.contains(partition) ?? false)
    }
    for number in owners.indices where owners[number] == nil {
      let partition = Partition(number)
      let able = names.filter { canRead($0, partition) }
      // Where those that can read it have their share, one of them gets more.
      let most = able.max { spare($0) < spare($1) }
      guard let taker = able.first(where: { spare($0) > 0 }) ?? most else { continue }
      takers[partition] = taker
      counts[taker, default: 0] += 1
    }
    guard takers.isEmpty else { return }
    let poor = names.filter { spare($0) > 0 }
    for (number, owner) in owners.enumerated() {
      guard let owner, shares[owner] == nil || spare(owner) < 0 else { continue }
      let others = shares[owner] == nil ? names : poor
      if others.contains(where: { canRead($0, Partition(number)) }) {
        movable.insert(Partition(number))
      }
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// What a topic of the gateway's own broker means, found by its raw bytes in constant time.
struct TopicTable: ~Copyable {
  enum Role {
    case set(KeyIndex)
    case step(KeyIndex)
    case toggle(KeyIndex)
    case flush(KeyIndex)
    case cancel(KeyIndex)
    /// `settle/<device>/set` and `/get`.
    case deviceSet(Int)
    case deviceGet(Int)
    /// A device's state topic: the property, and which of its sources.
    case state(KeyIndex, source: Int)
    case availability(device: Int, source: Int)
    /// A foreign event that becomes a change.
    case input(Int)
    /// The gateway's own status: another gateway's, if somebody else is online there.
    case status
  }

  private var names = KeyTable()
  /// By topic index; most topics have one role, a shared state topic has several.
  private var roles: [[Role]] = []

  mutating func add(_ role: Role, for topic: String) {
    let index = Int(names.intern(topic).rawValue)
    if index == roles.count { roles.append([]) }
    roles[index].append(role)
  }

  /// The roles of a topic; empty for one that means nothing here.
  func roles(of topic: Span<UInt8>) -> [Role] {
    guard let index = names.find(topic) else { return [] }
    return roles[Int(index.rawValue)]
  }
}

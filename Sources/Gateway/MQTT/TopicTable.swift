// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// The roles of the topics at the gateway's own broker, found by raw bytes in constant time.
struct TopicTable: ~Copyable {
  enum Role {
    /// Each message is a request; retained ones are ignored.
    case command(Command)
    /// `settle/<device>/get`.
    case deviceGet(Int)
    /// A device's state topic: the property, and which of its sources.
    case state(KeyIndex, source: Int)
    case availability(device: Int, source: Int)
    /// A sleeping device reports itself here.
    case awake(device: Int)
    /// The status of a gateway at this base topic: this one's or another's.
    case status
    /// What follows the messages that the broker retains.
    case marker

    /// The order in which the roles of a topic receive a message: a value that a device turns out
    /// to have need not be sent when it reports itself.
    var rank: Int {
      switch self {
      case .command: 0
      case .deviceGet: 1
      case .state: 2
      case .availability: 3
      case .awake: 4
      case .status: 5
      case .marker: 6
      }
    }
  }

  enum Command {
    case set(KeyIndex)
    case step(KeyIndex)
    case toggle(KeyIndex)
    case flush(KeyIndex)
    case cancel(KeyIndex)
    /// `settle/<device>/set`.
    case deviceSet(Int)
    /// `settle/<device>/<property>/light/set`, in Home Assistant's JSON schema.
    case light(KeyIndex)
    /// `settle/scene/<name>/set`.
    case scene(String)
    /// A foreign event that becomes a change.
    case input(Int)
  }

  private var names = KeyTable()
  /// By topic index; most topics have one role, a shared state topic has several.
  private var roles = KeyArray<[Role]>()

  mutating func add(_ role: Role, for topic: String) {
    let index = names.intern(topic)
    roles.extend(toInclude: index, with: [])
    roles[index].append(role)
  }

  /// Removes the roles of the last topics, `limit` of them at most, from a table that is not used
  /// any more: each has memory of its own.
  ///
  /// - Returns: Whether none is left.
  mutating func free(_ limit: Int) -> Bool {
    roles.removeLast(min(limit, roles.count))
    return roles.isEmpty
  }

  /// The roles of a topic; empty for one that has none.
  func roles(of topic: Span<UInt8>) -> [Role] {
    guard let index = names.find(topic) else { return [] }
    return roles[index]
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values
package import JSON

/// One line of `pending`: a value that is not sent yet, and what it waits for.
package struct PendingRow: ListedObject, Hashable, Sendable {
  /// Why a value is still pending.
  package enum Waits: String, Hashable, Sendable, CaseIterable {
    /// The key is not quiet yet.
    case quiet
    /// Its lane has no token.
    case lane
    /// The previous command is not acknowledged.
    case inFlight = "in_flight"
    /// The broker or the device is offline.
    case offline
    /// Whether the device is online is not known yet, since the broker was connected just now.
    case unknown
    /// The device is asleep.
    case asleep
  }

  package var key = ""
  package var value = JSONValue.null
  package var collapsed = 0
  /// How many commands wait; more than one only of an action, whose next one is `value`.
  package var waiting = 1
  package var waits = Waits.quiet
  /// The time until it is sent; `nil` if that does not depend on the clock.
  package var dueMilliseconds: Int?

  package init() {}

  package init(
    key: String,
    value: JSONValue,
    collapsed: Int,
    waiting: Int = 1,
    waits: Waits,
    dueMilliseconds: Int?
  ) {
    self.key = key
    self.value = value
    self.collapsed = collapsed
    self.waiting = waiting
    self.waits = waits
    self.dueMilliseconds = dueMilliseconds
  }

  package mutating func list(_ members: inout MemberList) {
    members.text("key", &key, isNeeded: true)
    members.member("value", &value, isNeeded: true, read: { $0 }, write: { $0 })
    members.count("collapsed", &collapsed)
    members.word("waits", &waits, isNeeded: true)
    members.count("due_ms", &dueMilliseconds)
    members.member("waiting", &waiting, read: \.count) { $0 > 1 ? .count($0) : nil }
  }
}

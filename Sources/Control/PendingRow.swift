// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import Values

/// One line of `pending`: a value that is not sent yet, and what it waits for.
package struct PendingRow: ListedObject, Hashable, Sendable {
  package var key = ""
  package var value = JSONValue.null
  package var collapsed = 0
  /// How many commands wait; more than one only of an action, whose next one is `value`.
  package var waiting = 1
  package var waits = PendingReason.quiet
  /// The time until it is sent; `nil` if that does not depend on the clock.
  package var dueMilliseconds: Int?

  package init() {}

  package init(
    key: String,
    value: JSONValue,
    collapsed: Int,
    waiting: Int = 1,
    waits: PendingReason,
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

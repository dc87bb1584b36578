// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values
package import JSON

/// One line of `pending`: a value that is not sent yet, and what it waits for.
package struct PendingRow: Hashable, Sendable {
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

  package var key: String
  package var value: JSONValue
  package var collapsed: Int
  /// How many commands wait; more than one only of an action, whose next one is `value`.
  package var waiting: Int
  package var waits: Waits
  /// The time until it is sent; `nil` if that does not depend on the clock.
  package var dueMilliseconds: Int?

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

  /// Reads a row; `nil` when a member is missing or of the wrong type.
  package init?(_ json: JSONValue) {
    guard let key = json["key"]?.string, let value = json["value"],
      let waits = json["waits"]?.string.flatMap(Waits.init)
    else { return nil }
    self.init(
      key: key,
      value: value,
      collapsed: json["collapsed"]?.count ?? 0,
      waiting: json["waiting"]?.count ?? 1,
      waits: waits,
      dueMilliseconds: json["due_ms"]?.count
    )
  }

  package var json: JSONValue {
    var members: [JSONValue.Member] = [
      .init("key", .string(key)), .init("value", value),
      .init("collapsed", .integer(Int64(collapsed))), .init("waits", .string(waits.rawValue)),
      .init("due_ms", dueMilliseconds.map { .integer(Int64($0)) } ?? .null),
    ]
    if waiting > 1 { members.append(.init("waiting", .integer(Int64(waiting)))) }
    return .object(members)
  }
}

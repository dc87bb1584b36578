// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// What waits on one topic of a route, oldest first; every operation but ``prepend(_:)`` takes
/// constant time on average, however much waits.
struct WaitingEntries {
  private var entries: [RouteMachine.Entry] = []
  private var head = 0

  var count: Int { entries.count - head }
  var isEmpty: Bool { head == entries.count }
  var first: RouteMachine.Entry? { isEmpty ? nil : entries[head] }
  var last: RouteMachine.Entry? { isEmpty ? nil : entries.last }

  mutating func append(_ entry: RouteMachine.Entry) { entries.append(entry) }

  mutating func prepend(_ entry: RouteMachine.Entry) {
    if head > 0 {
      head -= 1
      entries[head] = entry
    } else {
      entries.insert(entry, at: 0)
    }
  }

  mutating func replaceFirst(_ entry: RouteMachine.Entry) { entries[head] = entry }

  mutating func replaceLast(_ entry: RouteMachine.Entry) { entries[entries.count - 1] = entry }

  mutating func popFirst() -> RouteMachine.Entry? {
    guard let first else { return nil }
    head += 1
    if head * 2 >= entries.count {
      entries.removeFirst(head)
      head = 0
    }
    return first
  }

  /// Drops what has waited longer than `ttl`; returns how many that were.
  mutating func dropExpired(after ttl: Duration, at now: Moment) -> Int {
    var dropped = 0
    while let first, first.readyAt.duration(to: now) > ttl {
      _ = popFirst()
      dropped += 1
    }
    return dropped
  }
}

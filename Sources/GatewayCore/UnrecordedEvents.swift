// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import LastOut
import Values

/// What the state machine decided and ``DurabilityGate`` has not recorded yet, in order.
struct UnrecordedEvents {
  /// How many events leave their memory to the next ones.
  private static let keptCapacity = 1024

  private var events: [CommandEvent] = []
  /// The place of the first event.
  private var next = 0

  /// Moves events here, behind those that are here already.
  mutating func append(_ new: inout [CommandEvent]) {
    if next < events.count {
      events.append(contentsOf: new)
    } else {
      clear()
      swap(&events, &new)
    }
    new.removeAll(keepingCapacity: true)
  }

  mutating func popFirst() -> CommandEvent? {
    guard next < events.count else { return nil }
    next += 1
    return events[next - 1]
  }

  /// The command that ends directly after `event`, the last one that was removed, because that one is
  /// newer.
  func number(replacedBy event: CommandEvent) -> UInt64? {
    guard next < events.count, case .superseded = events[next].phase, events[next].key == event.key
    else { return nil }
    return events[next].number
  }

  /// Removes and returns the events of one key.
  mutating func removeAll(of key: KeyIndex) -> [CommandEvent] {
    let removed = events[next...].filter { $0.key == key }
    events = events[next...].filter { $0.key != key }
    next = 0
    return removed
  }

  private mutating func clear() {
    events.removeAll(keepingCapacity: events.capacity <= Self.keptCapacity)
    next = 0
  }
}

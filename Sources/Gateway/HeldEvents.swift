// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import LastOut

/// Events that wait until a value is on the disk, oldest first: `accepted`, and whatever comes of
/// the same key after it.
///
/// Every operation takes time in proportion to what it gives out; an event is looked at twice or
/// three times in all.
struct HeldEvents {
  private struct Entry {
    /// `nil` once it was taken.
    var event: CommandEvent?
    /// It waits for everything up to here.
    var sequence: UInt64
  }

  private struct Waiting {
    var sequence: UInt64
    /// Places in ``entries``.
    var places: [Int]
  }

  private var entries: [Entry] = []
  private var waiting: [KeyIndex: Waiting] = [:]
  /// How many events wait.
  private(set) var count = 0

  /// How many places are taken, those that were emptied included.
  var capacityInUse: Int { entries.count }

  /// Whether events of `key` wait, and a further one has to wait behind them.
  func holds(_ key: KeyIndex) -> Bool { count > 0 && waiting[key] != nil }

  /// Holds an event until everything up to `sequence` is durable; without one, as long as those of
  /// its key that wait already.
  mutating func hold(_ event: CommandEvent, until sequence: UInt64? = nil) {
    if entries.count > 2 * count + 64 { compact() }
    let known = waiting[event.key]?.sequence ?? 0
    let sequence = max(sequence ?? known, known)
    waiting[event.key, default: Waiting(sequence: sequence, places: [])].sequence = sequence
    waiting[event.key]?.places.append(entries.count)
    entries.append(Entry(event: event, sequence: sequence))
    count += 1
  }

  /// Takes the events of one key.
  mutating func take(_ key: KeyIndex) -> [CommandEvent] {
    guard let found = waiting.removeValue(forKey: key) else { return [] }
    let events = found.places.compactMap { place -> CommandEvent? in
      defer { entries[place].event = nil }
      return entries[place].event
    }
    count -= events.count
    if count == 0 { entries.removeAll(keepingCapacity: true) }
    return events
  }

  /// Takes everything that waits for values up to `sequence`.
  mutating func take(through sequence: UInt64) -> [CommandEvent] {
    guard count > 0 else { return [] }
    var events: [CommandEvent] = []
    for place in entries.indices where entries[place].sequence <= sequence {
      guard let event = entries[place].event else { continue }
      entries[place].event = nil
      events.append(event)
    }
    count -= events.count
    compact()
    return events
  }

  /// Drops what was taken.
  private mutating func compact() {
    entries.removeAll { $0.event == nil }
    waiting.removeAll(keepingCapacity: true)
    for (place, entry) in entries.enumerated() {
      guard let key = entry.event?.key else { continue }
      waiting[key, default: Waiting(sequence: 0, places: [])].places.append(place)
      waiting[key]?.sequence = entry.sequence  // It never falls within a key.
    }
  }
}

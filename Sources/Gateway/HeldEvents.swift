// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import LastOut

/// Events that wait until a value is on the disk, oldest first: `accepted`, and whatever comes of
/// the same key after it.
///
/// One queue for all keys, in which each key's events are linked. Every operation takes time in
/// proportion to what it gives out; an event is looked at twice or three times in all.
struct HeldEvents {
  private struct Entry {
    let key: KeyIndex
    var isTaken = false
    /// `nil` once it was taken.
    var event: CommandEvent?
    /// It waits for everything up to here.
    var sequence: UInt64
    /// The place of the key's next event; -1 at the last.
    var next = -1
  }

  /// The events of one key.
  private struct Chain {
    /// Places in ``entries``; -1 where there are none.
    var first = -1
    var last = -1
    /// What the last one waits for.
    var sequence: UInt64 = 0
  }

  private var entries: [Entry] = []
  /// How many at the beginning were taken.
  private var head = 0
  /// By key, as far as a key had an event.
  private var chains: [Chain] = []
  /// How many events wait.
  private(set) var count = 0

  /// How many places are taken, those that were emptied included.
  var capacityInUse: Int { entries.count }

  /// Whether events of `key` wait, and a further one has to wait behind them.
  func holds(_ key: KeyIndex) -> Bool {
    let place = Int(key.rawValue)
    return place < chains.count && chains[place].first >= 0
  }

  /// Holds an event until everything up to `sequence` is durable; without one, as long as those of
  /// its key that wait already.
  mutating func hold(_ event: consuming CommandEvent, until sequence: UInt64? = nil) {
    if entries.count > 2 * count + 64 { compact() }
    let key = Int(event.key.rawValue)
    while chains.count <= key { chains.append(Chain()) }
    let known = chains[key].first >= 0 ? chains[key].sequence : 0
    let sequence = max(sequence ?? known, known)
    link(entries.count, of: key, until: sequence)
    entries.append(Entry(key: event.key, event: event, sequence: sequence))
    count += 1
  }

  /// Takes the events of one key.
  mutating func take(_ key: KeyIndex) -> [CommandEvent] {
    guard holds(key) else { return [] }
    var events: [CommandEvent] = []
    var place = chains[Int(key.rawValue)].first
    while place >= 0 {
      if let event = release(place) { events.append(event) }
      place = entries[place].next
    }
    chains[Int(key.rawValue)].first = -1
    count -= events.count
    passTaken()
    return events
  }

  /// Takes everything that waits for values up to `sequence`.
  mutating func take(through sequence: UInt64) -> [CommandEvent] {
    guard count > 0 else { return [] }
    var events: [CommandEvent] = []
    events.reserveCapacity(count)
    for place in head..<entries.count where entries[place].sequence <= sequence {
      guard let event = release(place) else { continue }
      // Within a key the sequence never falls: what is behind it waits on.
      chains[Int(event.key.rawValue)].first = entries[place].next
      events.append(event)
    }
    count -= events.count
    passTaken()
    return events
  }

  private mutating func release(_ place: Int) -> CommandEvent? {
    entries[place].isTaken = true
    return entries[place].event.take()
  }

  /// Goes on to the first that waits; with none, all places are free again.
  private mutating func passTaken() {
    if count == 0 {
      entries.removeAll(keepingCapacity: true)
      head = 0
    }
    while head < entries.count, entries[head].isTaken { head += 1 }
  }

  /// Drops what was taken.
  private mutating func compact() {
    var kept = 0
    for place in head..<entries.count where !entries[place].isTaken {
      chains[Int(entries[place].key.rawValue)].first = -1
      entries.swapAt(kept, place)
      kept += 1
    }
    entries.removeSubrange(kept...)
    head = 0
    for place in entries.indices {
      entries[place].next = -1
      // Within a key the sequence never falls.
      link(place, of: Int(entries[place].key.rawValue), until: entries[place].sequence)
    }
  }

  /// Puts a place at the end of its key's chain.
  private mutating func link(_ place: Int, of key: Int, until sequence: UInt64) {
    if chains[key].first < 0 {
      chains[key].first = place
    } else {
      entries[chains[key].last].next = place
    }
    chains[key].last = place
    chains[key].sequence = sequence
  }
}

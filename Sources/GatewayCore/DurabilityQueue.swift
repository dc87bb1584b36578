// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import LastOut

/// Events that wait for a commit, oldest first: `accepted`, and the later events of the same key.
///
/// One array for all keys, in which the events of each key are linked. Every operation takes time
/// in proportion to what it removes.
package struct DurabilityQueue {
  private struct Entry {
    let key: KeyIndex
    /// The place of the key's next event; -1 for the last.
    var next: Int32 = -1
    /// The event waits until everything up to this sequence number is durable.
    let sequence: UInt64
    /// `nil` once removed.
    var event: CommandEvent?
  }

  /// The events of one key.
  private struct Chain {
    /// Places in ``entries``; -1 when empty.
    var first: Int32 = -1
    var last: Int32 = -1
    /// What the last event waits for.
    var sequence: UInt64 = 0
  }

  private var entries: [Entry] = []
  /// How many entries at the front are removed.
  private var head = 0
  /// Where ``popNext(through:)`` continues.
  private var cursor = 0
  /// By key.
  private var chains: [Chain] = []
  /// How many events wait.
  package private(set) var count = 0

  package init() {}

  /// How many entries are allocated, removed ones included.
  package var entryCount: Int { entries.count }

  /// Whether events of `key` wait, so that a further one must queue behind them.
  package func contains(_ key: KeyIndex) -> Bool {
    let place = Int(key.rawValue)
    return place < chains.count && chains[place].first >= 0
  }

  /// Adds an event that waits until everything up to `sequence` is durable, or, without a sequence
  /// number, as long as the events of its key that are queued already.
  package mutating func append(_ event: consuming CommandEvent, until sequence: UInt64? = nil) {
    if entries.count > 2 * count + 64 { compact() }
    let key = Int(event.key.rawValue)
    while chains.count <= key { chains.append(Chain()) }
    let known = chains[key].first >= 0 ? chains[key].sequence : 0
    let sequence = max(sequence ?? known, known)
    link(entries.count, of: key, until: sequence)
    count += 1
    entries.append(Entry(key: event.key, sequence: sequence, event: event))
  }

  /// Removes and returns the events of one key.
  package mutating func removeAll(of key: KeyIndex) -> [CommandEvent] {
    guard contains(key) else { return [] }
    var events: [CommandEvent] = []
    var place = chains[Int(key.rawValue)].first
    while place >= 0 {
      if let event = entries[Int(place)].event.take() {
        count -= 1
        events.append(event)
      }
      place = entries[Int(place)].next
    }
    chains[Int(key.rawValue)].first = -1
    skipRemoved()
    return events
  }

  /// Removes and returns the next event that waits for a sequence number up to `sequence`.
  ///
  /// Call it with the same number until it returns `nil`.
  package mutating func popNext(through sequence: UInt64) -> CommandEvent? {
    cursor = max(cursor, head)
    while cursor < entries.count {
      let place = cursor
      cursor += 1
      guard entries[place].sequence <= sequence, let event = entries[place].event.take() else {
        continue
      }
      count -= 1
      // Within a key the sequence never falls: what follows waits on.
      chains[Int(entries[place].key.rawValue)].first = entries[place].next
      return event
    }
    cursor = 0
    skipRemoved()
    return nil
  }

  private mutating func skipRemoved() {
    if count == 0 {
      entries.removeAll(keepingCapacity: true)
      head = 0
      cursor = 0
    }
    while head < entries.count, entries[head].event == nil { head += 1 }
  }

  private mutating func compact() {
    var kept = 0
    for place in head..<entries.count where entries[place].event != nil {
      chains[Int(entries[place].key.rawValue)].first = -1
      entries.swapAt(kept, place)
      kept += 1
    }
    entries.removeSubrange(kept...)
    head = 0
    cursor = 0
    for place in entries.indices {
      entries[place].next = -1
      link(place, of: Int(entries[place].key.rawValue), until: entries[place].sequence)
    }
  }

  /// Appends a place to its key's chain.
  private mutating func link(_ place: Int, of key: Int, until sequence: UInt64) {
    if chains[key].first < 0 {
      chains[key].first = Int32(place)
    } else {
      entries[Int(chains[key].last)].next = Int32(place)
    }
    chains[key].last = Int32(place)
    chains[key].sequence = sequence
  }
}

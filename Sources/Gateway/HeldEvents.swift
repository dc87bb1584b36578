// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut

/// Events that wait until a value is on the disk, oldest first: `accepted`, and whatever comes of
/// the same key after it.
///
/// One queue for all keys, in which each key's events are linked. Every operation takes time in
/// proportion to what it gives out; an event is looked at twice or three times in all. A commit
/// takes tens of thousands of quick changes along, so of a plain `accepted` only what differs from
/// the next is held.
struct HeldEvents {
  private struct Entry {
    let key: KeyIndex
    /// The place of the key's next event; -1 at the last.
    var next: Int32 = -1
    /// It waits for everything up to here.
    let sequence: UInt64
    var rest: Rest
    var number: UInt64 = 0
    var acceptedAt = Moment.zero
    var value = Value.boolean(false)

    var isTaken: Bool {
      if case .taken = rest { true } else { false }
    }
  }

  /// What an entry is; one word.
  private enum Rest {
    /// A plain `accepted`, and who asked.
    case accepted(ChangeOrigin?)
    case other(Other)
    case taken
  }

  /// What is given out.
  enum Held {
    case accepted(Accepted)
    case other(Other)

    var event: CommandEvent {
      switch self {
      case .accepted(let accepted): accepted.event
      case .other(let other): other.event
      }
    }
  }

  /// A plain `accepted`.
  struct Accepted {
    let key: KeyIndex
    let value: Value
    let number: UInt64
    let acceptedAt: Moment
    let origin: ChangeOrigin?

    var event: CommandEvent {
      .accepted(key, value, number: number, at: acceptedAt, origin: origin)
    }
  }

  /// An event as a whole.
  final class Other {
    let event: CommandEvent

    init(_ event: consuming CommandEvent) {
      self.event = event
    }
  }

  /// The events of one key.
  private struct Chain {
    /// Places in ``entries``; -1 where there are none.
    var first: Int32 = -1
    var last: Int32 = -1
    /// What the last one waits for.
    var sequence: UInt64 = 0
  }

  private var entries: [Entry] = []
  /// How many at the beginning were taken.
  private var head = 0
  /// Where ``takeNext(through:)`` goes on.
  private var place = 0
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
  mutating func hold(_ event: borrowing CommandEvent, until sequence: UInt64? = nil) {
    let sequence = makePlace(for: event.key, until: sequence)
    entries.append(Entry(key: event.key, sequence: sequence, rest: .other(Other(copy event))))
  }

  /// Holds an `accepted` with its value.
  mutating func hold(_ event: borrowing CommandEvent, _ value: Value, until sequence: UInt64) {
    guard Self.isPlain(event) else { return hold(event, until: sequence) }
    let sequence = makePlace(for: event.key, until: sequence)
    entries.append(
      Entry(
        key: event.key,
        sequence: sequence,
        rest: .accepted(event.origin),
        number: event.number,
        acceptedAt: event.acceptedAt,
        value: value
      )
    )
  }

  /// Links the place of an entry that is to be added, and returns what it waits for.
  private mutating func makePlace(for key: KeyIndex, until sequence: UInt64?) -> UInt64 {
    if entries.count > 2 * count + 64 { compact() }
    let key = Int(key.rawValue)
    while chains.count <= key { chains.append(Chain()) }
    let known = chains[key].first >= 0 ? chains[key].sequence : 0
    let sequence = max(sequence ?? known, known)
    link(entries.count, of: key, until: sequence)
    count += 1
    return sequence
  }

  /// Whether an event is an `accepted` of which nothing else is to be said.
  private static func isPlain(_ event: borrowing CommandEvent) -> Bool {
    guard case .accepted = event.phase, event.reason == nil else { return false }
    guard event.at == event.acceptedAt else { return false }
    return !event.isFinal && !event.isAction && event.collapsed == 0 && event.attempt == 1
  }

  /// Takes the events of one key.
  mutating func take(_ key: KeyIndex) -> [CommandEvent] {
    guard holds(key) else { return [] }
    var events: [CommandEvent] = []
    var place = chains[Int(key.rawValue)].first
    while place >= 0 {
      if let held = release(Int(place)) { events.append(held.event) }
      place = entries[Int(place)].next
    }
    chains[Int(key.rawValue)].first = -1
    passTaken()
    return events
  }

  /// Takes the next event that waits for a value up to `sequence`; `nil` when there is none left.
  ///
  /// To be called until then, with the same number.
  mutating func takeNext(through sequence: UInt64) -> Held? {
    place = max(place, head)
    while place < entries.count {
      let here = place
      place += 1
      guard entries[here].sequence <= sequence, let held = release(here) else { continue }
      // Within a key the sequence never falls: what is behind it waits on.
      chains[Int(entries[here].key.rawValue)].first = entries[here].next
      return held
    }
    place = 0
    passTaken()
    return nil
  }

  /// Takes what is at a place; `nil` when it was taken before.
  private mutating func release(_ place: Int) -> Held? {
    var rest = Rest.taken
    swap(&rest, &entries[place].rest)
    switch consume rest {
    case .taken: return nil
    case .other(let other):
      count -= 1
      return .other(other)
    case .accepted(let origin):
      count -= 1
      return .accepted(
        Accepted(
          key: entries[place].key,
          value: entries[place].value,
          number: entries[place].number,
          acceptedAt: entries[place].acceptedAt,
          origin: origin
        )
      )
    }
  }

  /// Goes on to the first that waits; with none, all places are free again.
  private mutating func passTaken() {
    if count == 0 {
      entries.removeAll(keepingCapacity: true)
      head = 0
      place = 0
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
    place = 0
    for place in entries.indices {
      entries[place].next = -1
      // Within a key the sequence never falls.
      link(place, of: Int(entries[place].key.rawValue), until: entries[place].sequence)
    }
  }

  /// Puts a place at the end of its key's chain.
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

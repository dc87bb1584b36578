// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
internal import Devices
package import JSON
package import LastOut
package import Values

/// The last commands of each key, bounded in number per key and in all.
///
/// A command is one entry, which its later phases update; one that was sent and then superseded
/// stays `sent`, and its reason says what followed. Changes that were replaced before they were
/// sent are no commands. A new command of a key with ``depth`` entries replaces the oldest of them;
/// once ``limit`` entries exist, it replaces the oldest of all keys. Recording takes constant time,
/// and allocates only while the number of entries grows.
package struct CommandHistory: Sendable {
  /// What became of one command.
  package struct Entry: Sendable {
    package var key: KeyIndex
    /// The number of the command, or of the rejection.
    package var number: UInt64
    package var phase: Phase
    package var value: JSONValue?
    package var collapsed: Int
    package var acceptedAt: Moment
    /// When the phase began.
    package var at: Moment
    package var attempt: Int
    package var reason: String?
    /// Who asked; `nil` for a plain MQTT message.
    package var origin: ChangeOrigin?
  }

  /// An entry with its neighbours: a slot is in the list of its key and in that of all, by age.
  private struct Slot {
    var entry: Entry
    /// The next newer slot of the key; -1 at its end.
    var newerOfKey: Int32 = -1
    var older: Int32 = -1
    var newer: Int32 = -1
  }

  private struct List {
    var oldest: Int32 = -1
    var newest: Int32 = -1
  }

  private struct KeyList {
    var list = List()
    var count: Int32 = 0
  }

  /// How many commands of one key are kept.
  package static let depth = 10
  /// How many commands are kept in all.
  package let limit: Int
  private var slots: [Slot] = []
  private var all = List()
  private var keys: [KeyList] = []

  /// About 10 MB at most, without the texts of reasons.
  package init(limit: Int = 65_536) { self.limit = limit }

  /// The number of entries, of all keys.
  package var count: Int { slots.count }

  /// The commands of a key, the oldest first.
  package func entries(of key: KeyIndex) -> [Entry] {
    var found: [Entry] = []
    var slot = list(of: key).list.oldest
    while slot >= 0 {
      found.append(slots[Int(slot)].entry)
      slot = slots[Int(slot)].newerOfKey
    }
    return found
  }

  // MARK: - Recording

  /// Records a phase of a command.
  package mutating func record(_ event: borrowing CommandEvent) {
    switch event.phase {
    // A command begins when it is sent, or ends without that.
    case .accepted: return
    case .superseded:
      // A change that was replaced before it was sent has no entry.
      guard let slot = slot(of: event.number, key: event.key) else { return }
      return update(slot, with: event)
    case .sending, .sent, .confirmed, .unchanged, .cancelled, .rejected, .failed, .expired:
      if let slot = slot(of: event.number, key: event.key) { return update(slot, with: event) }
    }
    append(
      Entry(
        key: event.key,
        number: event.number,
        phase: event.phase,
        value: event.value?.json,
        collapsed: event.collapsed,
        acceptedAt: event.acceptedAt,
        at: event.at,
        attempt: event.attempt,
        reason: event.reason,
        origin: event.origin
      )
    )
  }

  /// Records a request that was rejected before it was a change.
  package mutating func recordRejection(
    of key: KeyIndex,
    value: JSONValue?,
    reason: String?,
    origin: ChangeOrigin?,
    at now: Moment
  ) {
    append(
      Entry(
        key: key,
        number: 0,  // No command has it.
        phase: .rejected,
        value: value,
        collapsed: 0,
        acceptedAt: now,
        at: now,
        attempt: 1,
        reason: reason,
        origin: origin
      )
    )
  }

  private mutating func update(_ slot: Int32, with event: borrowing CommandEvent) {
    let place = Int(slot)
    if case .superseded = event.phase, case .sent = slots[place].entry.phase {
      // The device has had it, whatever came after.
      slots[place].entry.reason = "then superseded\(event.reason.map { ": \($0)" } ?? "")"
      return
    }
    slots[place].entry.phase = event.phase
    slots[place].entry.at = event.at
    slots[place].entry.attempt = event.attempt
    slots[place].entry.reason = event.reason
    slots[place].entry.collapsed = event.collapsed
  }

  /// The slot of a command, among the few of its key.
  private func slot(of number: UInt64, key: KeyIndex) -> Int32? {
    var slot = list(of: key).list.oldest
    while slot >= 0 {
      if slots[Int(slot)].entry.number == number { return slot }
      slot = slots[Int(slot)].newerOfKey
    }
    return nil
  }

  // MARK: - Slots

  private func list(of key: KeyIndex) -> KeyList {
    let place = Int(key.rawValue)
    return place < keys.count ? keys[place] : KeyList()
  }

  /// A rejection that repeats the newest entry takes its place, so that a flood of mistakes leaves
  /// the commands before it.
  private mutating func append(_ entry: Entry) {
    let place = Int(entry.key.rawValue)
    while keys.count <= place { keys.append(KeyList()) }
    let newest = Int(keys[place].list.newest)
    if newest >= 0, slots[newest].entry.isSameRejection(as: entry) {
      slots[newest].entry = entry
      return
    }
    let slot: Int32
    if keys[place].count >= Self.depth {
      slot = removeOldest(of: place)
      slots[Int(slot)] = Slot(entry: entry)
    } else if slots.count >= limit, all.oldest >= 0 {
      // The oldest of all is the oldest of its key.
      slot = removeOldest(of: Int(slots[Int(all.oldest)].entry.key.rawValue))
      slots[Int(slot)] = Slot(entry: entry)
    } else {
      slot = Int32(slots.count)
      slots.append(Slot(entry: entry))
    }
    link(slot, place)
  }

  private mutating func link(_ slot: Int32, _ key: Int) {
    if keys[key].list.newest >= 0 {
      slots[Int(keys[key].list.newest)].newerOfKey = slot
    } else {
      keys[key].list.oldest = slot
    }
    keys[key].list.newest = slot
    keys[key].count += 1
    slots[Int(slot)].older = all.newest
    if all.newest >= 0 { slots[Int(all.newest)].newer = slot } else { all.oldest = slot }
    all.newest = slot
  }

  /// Removes the oldest entry of a key from both lists; returns its slot.
  private mutating func removeOldest(of key: Int) -> Int32 {
    let slot = keys[key].list.oldest
    let old = slots[Int(slot)]
    keys[key].list.oldest = old.newerOfKey
    if old.newerOfKey < 0 { keys[key].list.newest = -1 }
    keys[key].count -= 1
    if old.older >= 0 { slots[Int(old.older)].newer = old.newer } else { all.oldest = old.newer }
    if old.newer >= 0 { slots[Int(old.newer)].older = old.older } else { all.newest = old.older }
    return slot
  }
}

extension CommandHistory.Entry {
  fileprivate func isSameRejection(as other: Self) -> Bool {
    phase == .rejected && other.phase == .rejected && reason == other.reason
      && origin?.source == other.origin?.source
  }
}

/// The identifiers of commands whose callers gave none: ULIDs of 48 bits of time, 16 bits of the
/// session and 64 bits of the command's number.
package struct CommandIdentifiers: Sendable {
  private let session: UInt16
  private let wallStart: Int64
  private let monotonicStart: Moment

  /// - Parameters:
  ///   - wallMilliseconds: The time of day at `now`, in milliseconds since 1970.
  ///   - now: The moment that `wallMilliseconds` belongs to.
  ///   - session: Tells two runs of the gateway apart.
  package init(wallMilliseconds: Int64, now: Moment, session: UInt16) {
    wallStart = wallMilliseconds
    monotonicStart = now
    self.session = session
  }

  /// The caller's identifier, else the command's ULID.
  package func id(of number: UInt64, acceptedAt: Moment, given: JSONValue?) -> JSONValue {
    given ?? .string(ulid(of: number, at: acceptedAt))
  }

  package func ulid(of number: UInt64, at moment: Moment) -> String {
    CrockfordText.of(high: high(at: moment), low: number)
  }

  /// Appends a ULID in quotes.
  package func append(_ number: UInt64, at moment: Moment, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "\""))
    CrockfordText.append(high: high(at: moment), low: number, to: &output)
    output.append(UInt8(ascii: "\""))
  }

  /// The upper half of a ULID.
  private func high(at moment: Moment) -> UInt64 {
    let elapsed = Int64(bitPattern: moment.nanoseconds &- monotonicStart.nanoseconds) / 1_000_000
    let milliseconds = UInt64(max(0, wallStart + elapsed))
    return (milliseconds & 0xFFFF_FFFF_FFFF) << 16 | UInt64(session)
  }
}

/// Crockford's base 32 of 128 bits: 26 characters that sort as the number does.
package enum CrockfordText {
  package static func of(high: UInt64, low: UInt64) -> String {
    var text: [UInt8] = []
    append(high: high, low: low, to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Appends the characters.
  package static func append(high: UInt64, low: UInt64, to output: inout [UInt8]) {
    var characters = InlineArray<26, UInt8>(repeating: 0)
    var (high, low) = (high, low)
    for position in stride(from: 25, through: 0, by: -1) {
      characters[position] = unsafe alphabet.utf8Start[Int(low & 31)]
      low = low >> 5 | high << 59
      high >>= 5
    }
    unsafe characters.span.withUnsafeBufferPointer { unsafe output.append(contentsOf: $0) }
  }

  /// The digits, then the letters without I, L, O and U.
  private static var alphabet: StaticString { "0123456789ABCDEFGHJKMNPQRSTVWXYZ" }
}

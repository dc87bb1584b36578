// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// The publishes that are with the library: how many may be, since when, and whose they are.
struct PublishWindow: Sendable {
  /// One publish that has not been answered.
  struct Entry: Hashable, Sendable {
    /// The library's message identifier.
    var identifier: Int32
    var token: MQTTClient.Token
    var topic: String
    var qos = 1
    var sentAt: Moment
  }

  /// A publish at QoS 0 that has not left yet.
  private struct Departure {
    var entry: Entry
    /// How many bytes must have left, counted as ``SocketBuffer/sent`` is.
    var position: UInt64
  }

  /// How many may be unanswered at a time.
  var limit: Int
  /// In the order of sending.
  private(set) var entries: [Entry] = []
  /// In the order of their positions; they take no room.
  private var departures: [Departure] = []
  private(set) var suspects = Suspects()

  init(limit: Int) {
    self.limit = max(1, limit)
  }

  /// Whether another publish may be handed over.
  var hasRoom: Bool {
    entries.count < limit && (entries.isEmpty || !suspects.isProbing)
  }

  /// How many publishes have no outcome yet.
  var count: Int { entries.count + departures.count }

  /// When the oldest of them was handed over.
  var oldest: Moment? {
    guard let departure = departures.first else { return entries.first?.sentAt }
    return min(departure.entry.sentAt, entries.first?.sentAt ?? departure.entry.sentAt)
  }

  /// Whether there would be more room if everything was written.
  var awaitsWriting: Bool { !hasRoom && entries.contains { $0.qos == 0 } }

  mutating func sent(_ entry: Entry) {
    entries.append(entry)
  }

  /// Takes out the publish that was answered; `nil` if it is not known.
  mutating func answered(identifier: Int32) -> Entry? {
    guard let position = entries.firstIndex(where: { $0.identifier == identifier }) else {
      return nil
    }
    let entry = entries.remove(at: position)
    suspects.answered(entry.topic)
    return entry
  }

  /// Keeps a publish that was answered until `position` bytes have left.
  mutating func departs(_ entry: Entry, at position: UInt64) {
    departures.append(Departure(entry: entry, position: position))
  }

  /// Takes out the publishes that needed no more than `sent` bytes to leave.
  mutating func departed(at sent: UInt64) -> [Entry] {
    let count = departures.firstIndex { $0.position > sent } ?? departures.count
    guard count > 0 else { return [] }
    let departed = departures.prefix(count).map(\.entry)
    departures.removeFirst(count)
    return departed
  }

  /// Empties the window at the end of a connection.
  ///
  /// - Parameter byPeer: Whether the peer dropped it, perhaps for what was in flight; not so after
  ///   a deadline of ours, or an orderly end.
  /// - Returns: What was in flight, that at QoS 0 first, else in the order of sending, and the topic
  ///   quarantined for it.
  mutating func connectionEnded(byPeer: Bool) -> (lost: [Entry], quarantined: String?) {
    let lost = departures.map(\.entry) + entries
    entries = []
    departures = []
    let quarantined = byPeer ? suspects.connectionDropped(inFlight: lost.map(\.topic)) : nil
    return (lost, quarantined)
  }

  /// Ends the probing; see ``Suspects/clear()``.
  mutating func connectionProvedStable() {
    suspects.clear()
  }
}

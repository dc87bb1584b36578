// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// The commands in flight that take up room in the window of their lane, one message each.
///
/// A message is known by the key that it was sent for. It takes up room until its command ends or is
/// presumed to have ended, and is remembered until its command ends, because a late confirmation
/// tells most about the mesh.
struct LaneFlights {
  struct Flight {
    let lane: Int
    let device: Int
    let sentAt: Moment
    /// Whether the time until its confirmation says something about the mesh.
    let isMeasured: Bool
    /// Whether it takes up room.
    var hasRoom = true
  }

  private var flights: [KeyIndex: Flight] = [:]
  /// When the commands that take up room are presumed to have ended.
  private var presumptions: KeyDeadlines
  /// The room of commands that no key names any more, the first to be free at the front.
  private var detached: [(lane: Int, until: Moment)] = []
  /// Devices that have not confirmed their last command.
  private var isSilent: [Bool]

  init(keys: Int, devices: Int) {
    presumptions = KeyDeadlines(keys: keys)
    isSilent = Array(repeating: false, count: devices)
  }

  mutating func extend(keys: Int, devices: Int) {
    presumptions.extend(keys: keys)
    while isSilent.count < devices { isSilent.append(false) }
  }

  /// When the first command is presumed to have ended.
  @inline(__always)
  var nextPresumption: Moment? { Moment.earlier(presumptions.first, detached.first?.until) }

  mutating func begin(_ flight: Flight, for key: KeyIndex, until moment: Moment) {
    flights[key] = flight
    presumptions.set(key, at: moment)
  }

  subscript(key: KeyIndex) -> Flight? { flights[key] }

  /// Presumes that a command that takes up room ends at `moment`.
  mutating func presume(_ key: KeyIndex, endsAt moment: Moment) {
    if flights[key]?.hasRoom == true { presumptions.set(key, at: moment) }
  }

  /// The lane of a command that is presumed to have ended, once.
  mutating func popPresumed(at now: Moment) -> Int? {
    if let first = detached.first, first.until <= now {
      detached.removeFirst()
      return first.lane
    }
    guard let key = presumptions.popFirst(at: now) else { return nil }
    flights[key]?.hasRoom = false
    return flights[key]?.lane
  }

  /// Forgets the flight of `key`, whose room is taken until it is presumed to have ended.
  mutating func detach(_ key: KeyIndex) {
    guard let until = presumptions[key], let flight = end(key), flight.hasRoom else { return }
    let place = detached.lastIndex { $0.until <= until }.map { $0 + 1 } ?? 0
    detached.insert((flight.lane, until), at: place)
  }

  /// Forgets the flight of `key`, and returns it.
  mutating func end(_ key: KeyIndex) -> Flight? {
    guard !flights.isEmpty else { return nil }
    presumptions.remove(key)
    return flights.removeValue(forKey: key)
  }

  /// Records whether a device confirmed a command; `false` if it did not, and did not before.
  mutating func record(isSilent: Bool, of device: Int) -> Bool {
    defer { self.isSilent[device] = isSilent }
    return !(isSilent && self.isSilent[device])
  }
}

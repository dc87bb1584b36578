// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// The commands in flight that take up room in the window of their lane, one message each.
///
/// A message is known by the key that it was sent for. It takes up room until its command ends or
/// is presumed to have ended, and is remembered until its command ends, because a late confirmation
/// tells most about the mesh. A message for a group is known by the group's key, and ends with the
/// last command that it carries.
struct LaneFlights {
  struct Flight {
    let lane: Int
    /// The device that it was sent to; `nil` for a group, which says nothing about one device.
    let device: Int?
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
  /// Messages that carry commands of several members of a group.
  private var shared = SharedFlights()
  /// What is known of each device.
  private var habits: [Habit]

  /// Whether a device confirms its commands.
  enum Habit {
    /// It has not had to yet.
    case unknown
    case confirms
    /// It did not confirm its last command.
    case silent
  }

  init(keys: Int, devices: Int) {
    presumptions = KeyDeadlines(keys: keys)
    habits = Array(repeating: .unknown, count: devices)
  }

  mutating func extend(keys: Int, devices: Int) {
    presumptions.extend(keys: keys)
    while habits.count < devices { habits.append(.unknown) }
  }

  /// When the first command is presumed to have ended.
  @inline(__always)
  var nextPresumption: Moment? { Moment.earlier(presumptions.first, detached.first?.until) }

  mutating func begin(_ flight: Flight, for key: KeyIndex, until moment: Moment) {
    flights[key] = flight
    presumptions.set(key, at: moment)
  }

  subscript(key: KeyIndex) -> Flight? { flights[key] }

  /// Begins a message that carries the commands of `members`; an older one of the group has ended.
  mutating func begin(
    _ flight: Flight,
    for group: KeyIndex,
    carrying members: [KeyIndex],
    until moment: Moment
  ) {
    shared.begin(group, carrying: members)
    begin(flight, for: group, until: moment)
  }

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

  /// Forgets the flight of `key`, and returns it; a shared one once its other commands have ended.
  mutating func end(_ key: KeyIndex) -> Flight? {
    guard !flights.isEmpty, let name = shared.end(key) else { return nil }
    presumptions.remove(name)
    return flights.removeValue(forKey: name)
  }

  /// Forgets the message to a group, whatever has become of the commands in it.
  mutating func endMessage(of group: KeyIndex) -> Flight? {
    presumptions.remove(group)
    return flights.removeValue(forKey: group)
  }

  /// The key that the message with the command of `key`, which nothing confirms, is known by; `nil`
  /// while other commands in it are in flight.
  mutating func lastName(of key: KeyIndex) -> KeyIndex? { shared.end(key) }

  /// What is known of a device.
  func habit(of device: Int) -> Habit { habits[device] }

  /// Records whether a device confirmed a command, and returns what was known before.
  mutating func record(isSilent: Bool, of device: Int) -> Habit {
    defer { habits[device] = isSilent ? .silent : .confirms }
    return habits[device]
  }
}

/// Which commands share a message, known by the key of their group: it has ended when they all
/// have.
struct SharedFlights {
  /// The group of each key whose command is in flight in such a message.
  private var groups: [KeyIndex: KeyIndex] = [:]
  /// The keys whose commands have not ended, by group.
  private var members: [KeyIndex: Set<KeyIndex>] = [:]

  /// Begins a message; what is left of an older one of the group no longer counts.
  mutating func begin(_ group: KeyIndex, carrying keys: [KeyIndex]) {
    for key in members[group] ?? [] { groups[key] = nil }
    members[group] = Set(keys)
    for key in keys { groups[key] = group }
  }

  /// The command of `key` ended.
  ///
  /// - Returns: What its message is known by, which is `key` for one that is not shared; `nil`
  ///   while other commands of the message are in flight.
  mutating func end(_ key: KeyIndex) -> KeyIndex? {
    guard !groups.isEmpty, let group = groups.removeValue(forKey: key) else { return key }
    members[group]?.remove(key)
    guard members[group]?.isEmpty == true else { return nil }
    members[group] = nil
    return group
  }
}

/// The lane of each device, device by device, and the limits of the lanes.
struct LaneAssignment {
  /// By lane.
  let limits: [String: LaneLimits]
  private let numbers: [String: Int]
  private(set) var laneOfDevice: [Int32] = []

  /// `numbers` has the number of each lane that has a limit.
  init(limits: [String: LaneLimits], numbers: [String: Int]) {
    self.limits = limits
    self.numbers = numbers
  }

  /// Assigns the next device, to the lane without a limit if its own has none.
  mutating func add(_ lane: String?) {
    let limited = lane.flatMap { limits[$0] == nil ? nil : numbers[$0] }
    laneOfDevice.append(Int32(limited ?? 0))
  }
}

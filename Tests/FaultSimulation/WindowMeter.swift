// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// The messages that take up room in the window of their lane.
///
/// Nothing in such a lane can be confirmed, so every time is known: a message has room until the
/// broker has had it for a quarter of a second, or until half a second has passed without a word.
struct WindowMeter {
  /// One message.
  struct Flight {
    /// What frees its room.
    enum Owner: Equatable {
      /// The command of this key.
      case key(Int)
      /// The commands of ``Flight/members``, in one message for the group with this key.
      case group(Int)
      /// The answer to a request.
      case device(Int)
      /// Nothing but time: a newer press of its button was sent.
      case nobody
    }

    var owner: Owner
    /// The keys whose commands have not ended, of a message for a group.
    var members: Set<Int> = []
    var lane: Int
    var until: Moment
  }

  static let patience = Duration.milliseconds(500)
  static let presumedTime = Duration.milliseconds(250)

  /// The sizes of fixed windows, by lane.
  private(set) var sizes: [Int: Int] = [:]
  private(set) var flights: [Flight] = []

  /// Gives a lane a window of this size.
  mutating func setWindow(_ size: Int, lane: Int) { sizes[lane] = size }

  /// Whether a command that is not urgent finds room.
  func hasRoom(in lane: Int) -> Bool { sizes[lane].map { inFlight(in: lane) < $0 } ?? true }

  /// Whether a request finds room, and leaves some.
  func hasRoomForRequest(in lane: Int) -> Bool {
    sizes[lane].map { inFlight(in: lane) < max(1, $0 - 1) } ?? true
  }

  func inFlight(in lane: Int) -> Int { flights.count { $0.lane == lane } }

  /// A message was sent; an action does not replace the one before.
  mutating func sent(_ owner: Flight.Owner, lane: Int, isAction: Bool = false, at now: Moment) {
    guard sizes[lane] != nil else { return }
    if isAction, let before = flights.firstIndex(where: { $0.owner == owner }) {
      flights[before].owner = .nobody
    } else {
      ended(owner)
    }
    flights.append(Flight(owner: owner, lane: lane, until: now.advanced(by: Self.patience)))
  }

  /// A message for a group was sent; it replaces an older one, unless it is an action.
  mutating func sent(
    group: Int,
    _ members: [Int],
    lane: Int,
    isAction: Bool,
    at now: Moment
  ) {
    guard sizes[lane] != nil else { return }
    if isAction, let before = flights.firstIndex(where: { $0.owner == .group(group) }) {
      flights[before].owner = .nobody
      flights[before].members = []
    }
    for member in members { ended(.key(member)) }
    ended(.group(group))
    let until = now.advanced(by: Self.patience)
    flights.append(
      Flight(owner: .group(group), members: Set(members), lane: lane, until: until)
    )
  }

  /// The broker has a command.
  mutating func acknowledged(_ place: Int, at now: Moment) {
    for index in flights.indices
    where flights[index].members.remove(place) != nil && flights[index].members.isEmpty {
      flights[index].until = now.advanced(by: Self.presumedTime)
    }
    for index in flights.indices where flights[index].owner == .key(place) {
      flights[index].until = now.advanced(by: Self.presumedTime)
    }
  }

  mutating func ended(_ owner: Flight.Owner) {
    flights.removeAll { $0.owner == owner }
    guard case .key(let place) = owner else { return }
    for index in flights.indices.reversed()
    where flights[index].members.remove(place) != nil && flights[index].members.isEmpty {
      flights.remove(at: index)
    }
  }

  mutating func requestsEnded() {
    flights.removeAll { if case .device = $0.owner { true } else { false } }
  }

  mutating func advance(to now: Moment) { flights.removeAll { $0.until <= now } }

  /// When messages stop taking up room; those of requests where these count.
  func deadlines(withRequests: Bool) -> [Moment] {
    flights.filter { flight in
      if case .device = flight.owner { withRequests } else { true }
    }.map(\.until)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import GatewayCore
import JSON
import LastOut
import Routing

/// The ledger of routed messages for the lamps of a bridge and for its groups, which share them.
///
/// It knows lamps, not topics: no lamp gets an older value after a newer one, nor an older one that
/// turns it on after a newer one that turns it off, or the other way around; and at last each lamp
/// has what it was given last. A brightness turns a lamp on. A value that is older than an off may
/// be left out, and must be if the off is that of a group.
struct RouteGroupLedger {
  /// The lamps that each name reaches.
  static let reach = ["l1": [0], "l2": [1], "l3": [2], "all": [0, 1], "hall": [0, 2]]

  /// What a message asks; all values but the power are its number.
  struct Message {
    var number: Int
    var name: String
    var power: Bool?
    var hasBrightness: Bool
    var hasColor: Bool
    var at: Moment

    /// Whether its lamps are on afterwards, if it decides that.
    var turns: Bool? { power ?? (hasBrightness ? true : nil) }

    /// A member of its own makes each payload different.
    var members: [JSONValue.Member] {
      let number = JSONValue.integer(Int64(number))
      var members: [JSONValue.Member] = []
      if let power { members.append(.init("state", power ? "ON" : "OFF")) }
      if hasBrightness { members.append(.init("brightness", number)) }
      if hasColor { members.append(.init("color_temp", number)) }
      return members + [.init("transition", number)]
    }
  }

  /// What a lamp was given last: the numbers of the messages.
  private struct Lamp: Equatable {
    var brightness = 0
    var color = 0
    var power: (number: Int, isOn: Bool)?
    /// The newest that turned it off, even if it is on again.
    var off = 0

    static func == (left: Lamp, right: Lamp) -> Bool {
      left.brightness == right.brightness && left.color == right.color
        && left.power?.isOn == right.power?.isOn
    }

    mutating func turn(_ isOn: Bool, by number: Int) {
      if !isOn { off = max(off, number) }
      if power.map({ $0.number <= number }) ?? true { power = (number, isOn) }
    }

    /// Whether a value that has to do with the power is older than an opposite one.
    func contradicts(_ isOn: Bool, of number: Int) -> Bool {
      power.map { $0.number > number && $0.isOn != isOn } ?? false
    }
  }

  private var accepted: [Message] = []
  private var wanted = Array(repeating: Lamp(), count: 3)
  private var given = Array(repeating: Lamp(), count: 3)
  private var inFlight: Set<UInt64> = []
  /// How many messages may have expired: the newest of them.
  private var excused = 0

  /// Records an accepted message.
  mutating func received(_ message: Message) {
    accepted.append(message)
    for lamp in Self.reach[message.name] ?? [] {
      let number = message.number
      if message.hasBrightness { wanted[lamp].brightness = number }
      if message.hasColor { wanted[lamp].color = number }
      if let power = message.turns { wanted[lamp].turn(power, by: number) }
    }
  }

  /// Messages that waited too long were dropped.
  mutating func expired() { excused = accepted.last?.number ?? 0 }

  /// Records a forwarded message; returns the violated rule, if any.
  mutating func forwarded(_ publish: RouteMachine.Publish) -> String? {
    let text = String(decoding: publish.payload, as: UTF8.self)
    let name = String(publish.topic.split(separator: "/")[1])
    inFlight.insert(publish.number)
    var values: [Substring: Substring] = [:]
    for member in text.dropFirst().dropLast().split(separator: ",") {
      let parts = member.split(separator: ":")
      values[parts[0].dropFirst().dropLast()] = parts[1]
    }
    guard let newest = values["transition"].flatMap({ Int($0) }) else {
      return "\(publish.topic) carries \(text), which no message had"
    }
    let isOn = values["state"].map { $0 == "\"ON\"" }
    if values["color_temp"] == nil, let off = groupOff(after: newest, for: name) {
      return "\(name) gets \(text), which the off \(off) of its group has ended"
    }
    let state = isOn.flatMap { asked($0, of: name, upTo: newest) }
    for lamp in Self.reach[name] ?? [] {
      if let isOn {
        guard let state else { return "\(name) has a state nobody asked for" }
        if given[lamp].contradicts(isOn, of: state) {
          return "l\(lamp + 1) gets the state of \(state) after a newer one: \(text)"
        }
        given[lamp].turn(isOn, by: state)
      }
      if let number = values["brightness"].flatMap({ Int($0) }) {
        if given[lamp].brightness > number
          || (isOn == nil && given[lamp].contradicts(true, of: number))
        {
          return "l\(lamp + 1) gets the brightness \(number) after something newer: \(text)"
        }
        given[lamp].brightness = number
        if isOn != false { given[lamp].turn(true, by: number) }
      }
      if let number = values["color_temp"].flatMap({ Int($0) }) {
        if given[lamp].color > number { return "l\(lamp + 1) gets an older color: \(text)" }
        given[lamp].color = number
      }
    }
    return nil
  }

  /// A newer off of a group that has all lamps of `name`: it drops what waits for them, but colors.
  private func groupOff(after number: Int, for name: String) -> Int? {
    let lamps = Self.reach[name] ?? []
    return accepted.last {
      $0.number > number && $0.name != name && $0.power == false
        && lamps.allSatisfy(Set(Self.reach[$0.name] ?? []).contains)
    }?.number
  }

  /// The newest message that asked for the state that one of `name` has; `nil` if none did, or if a
  /// newer one turned the lamps the other way and still counts.
  ///
  /// It does not count once something even newer turns each lamp back: where an off and a
  /// brightness follow an on that waits for the broker, the brightness drops only the off. The on
  /// is left, also when a group's message replaces the brightness, and does no harm: the lamps are
  /// to be on.
  private func asked(_ isOn: Bool, of name: String, upTo newest: Int) -> Int? {
    func newestOwn(_ matches: (Message) -> Bool) -> Int? {
      accepted.last { $0.name == name && $0.number <= newest && matches($0) }?.number
    }
    guard let state = newestOwn({ $0.power == isOn }) else { return nil }
    guard let opposite = newestOwn({ $0.turns == !isOn }), opposite > state else { return state }
    let isVoid = Self.reach[name]?.allSatisfy { lamp in
      accepted.contains {
        $0.number > opposite && $0.turns == isOn && Self.reach[$0.name]?.contains(lamp) == true
      }
    }
    return isVoid == true ? state : nil
  }

  /// Records the answer to a message.
  mutating func answered(_ number: UInt64) { inFlight.remove(number) }

  /// The messages in flight.
  var unanswered: [UInt64] { inFlight.sorted() }

  mutating func restart() { self = RouteGroupLedger() }

  /// A lamp that does not have what it was given last, if any.
  var unfinished: String? {
    for lamp in wanted.indices {
      var wanted = wanted[lamp]
      // What expired is excused, also where something newer has arrived since: that may be about
      // another property. An off makes a brightness void for ever: the on that follows does not
      // bring it back.
      if wanted.brightness <= max(excused, wanted.off) {
        wanted.brightness = given[lamp].brightness
      }
      if wanted.color <= excused { wanted.color = given[lamp].color }
      if let power = wanted.power, power.number <= excused { wanted.power = given[lamp].power }
      if wanted != given[lamp] {
        return "l\(lamp + 1) was given \(given[lamp]), and not \(wanted)"
      }
    }
    return nil
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import LastOut
import LastOutTesting
import Values

/// A physical device: obeys messages, travels, and knows its state at any time.
struct HouseholdDevice {
  /// How it behaves.
  struct Temper {
    /// Whether it first reports what it was asked for.
    var repeatsRequest = true
    /// The time of the whole way in milliseconds; 0 if it changes at once.
    var travel = 0
    /// The time between two reports of its way, in milliseconds.
    var interval = 500
    /// The numbers that it can reach.
    var reach = -Double.infinity...Double.infinity
    /// Whether a lamp reports how it fades out.
    var fadesOut = false
    /// Whether it forgets its values without power.
    var isForgetful = false
  }

  /// A way from one value to another.
  struct Motion {
    var from: Value
    var to: Value
    var start: Moment
    var end: Moment
    /// Names the motion in planned reports.
    var serial: Int
    var isPressed: Bool

    func value(at now: Moment) -> Value {
      guard now < end else { return to }
      let part =
        Double(now.nanoseconds - start.nanoseconds) / Double(end.nanoseconds - start.nanoseconds)
      switch (from, to) {
      case (.number(let from), .number(let to)):
        return .number((from + (to - from) * part).rounded())
      case (.color(let from), .color(let to)): return .color(Self.between(from, to, part))
      default: return to
      }
    }

    private static func between(_ from: Color, _ to: Color, _ part: Double) -> Color {
      guard case .rgb(let red, let green, let blue) = from,
        case .rgb(let otherRed, let otherGreen, let otherBlue) = to
      else { return to }
      func blend(_ left: UInt8, _ right: UInt8) -> UInt8 {
        UInt8(clamping: Int((Double(left) + (Double(right) - Double(left)) * part).rounded()))
      }
      return .rgb(
        red: blend(red, otherRed),
        green: blend(green, otherGreen),
        blue: blend(blue, otherBlue)
      )
    }
  }

  /// What follows from a message, in order.
  enum Reaction {
    case reports(String, Value)
    /// A motion began; it reports its way.
    case travels(String, serial: Int)
    case clamped(String)
    /// A lamp fades out from a level, which it reports.
    case fades(from: Double)
  }

  let form: Household.Form
  var temper = Temper()
  var isPowered = true
  private var values: [String: Value]
  private var motions: [String: Motion] = [:]
  /// Whether it was told to stop, and nothing moved it since.
  private(set) var isStopped = false
  private var serial = 0

  init(_ form: Household.Form) {
    self.form = form
    values = Self.defaults(of: form)
  }

  /// The values of a new device, and of one that has forgotten them.
  static func defaults(of form: Household.Form) -> [String: Value] {
    switch form {
    case .lamp, .statefulLamp:
      [
        "power": .boolean(false), "brightness": .number(128), "warmth": .number(300),
        "color": .color(.rgb(red: 255, green: 200, blue: 100)),
      ]
    case .shade: ["position": .number(0), "tilt": .number(50)]
    case .valve: ["setpoint": .number(20), "mode": .text("auto")]
    case .dimmer: ["level": .number(0)]
    case .relay: ["power": .boolean(false)]
    }
  }

  func value(_ name: String, at now: Moment) -> Value? {
    motions[name]?.value(at: now) ?? values[name]
  }

  /// Whether it is on its way to its last request.
  func isMoving(_ name: String, at now: Moment) -> Bool {
    motions[name].map { now < $0.end } ?? false
  }

  /// Whether it is on its way because of a press.
  func isPressed(_ name: String, at now: Moment) -> Bool {
    isMoving(name, at: now) && motions[name]?.isPressed == true
  }

  /// The motion that a planned report belongs to; `nil` if something ended it.
  func motion(_ name: String, _ serial: Int) -> Motion? {
    motions[name].flatMap { $0.serial == serial ? $0 : nil }
  }

  mutating func arrived(_ name: String) {
    if let motion = motions.removeValue(forKey: name) { values[name] = motion.to }
  }

  // MARK: - Messages

  /// Obeys the members of a message.
  mutating func obey(_ members: [(name: String, value: JSONValue)], at now: Moment) -> [Reaction] {
    switch form {
    case .lamp, .statefulLamp: obeyAsLamp(members, at: now)
    case .shade, .valve, .dimmer, .relay: members.flatMap { obey($0.name, $0.value, at: now) }
    }
  }

  private mutating func obeyAsLamp(
    _ members: [(name: String, value: JSONValue)],
    at now: Moment
  ) -> [Reaction] {
    let said = members.first { $0.name == "power" }.map { $0.value == "ON" }
    var reactions: [Reaction] = []
    let wasOn = values["power"] == .boolean(true)
    var isOnNow = said ?? wasOn
    let level = members.first { $0.name == "brightness" }?.value.double
    if said == nil, let level, form == .lamp || level == 0 { isOnNow = level > 0 }
    if isOnNow != wasOn || said != nil {
      values["power"] = .boolean(isOnNow)
      reactions.append(.reports("power", .boolean(isOnNow)))
      reactions += isOnNow ? restore(at: now) : fadeOut(wasOn: wasOn, at: now)
    }
    guard isOnNow || form == .lamp else { return reactions }
    for (name, value) in members where name != "power" {
      guard name == "brightness", value.double == 0 else {
        reactions += obey(name, value, at: now)
        continue
      }
      // Off is reported as the level 0; on again, it has the level that it had.
      reactions += isOnNow ? restore(at: now) : [.reports(name, .number(0))]
    }
    return reactions
  }

  /// A lamp that is on again has the level that it had.
  private func restore(at now: Moment) -> [Reaction] {
    value("brightness", at: now).map { [.reports("brightness", $0)] } ?? []
  }

  private func fadeOut(wasOn: Bool, at now: Moment) -> [Reaction] {
    guard wasOn, temper.fadesOut, case .number(let level)? = value("brightness", at: now) else {
      return []
    }
    return [.fades(from: level)]
  }

  private mutating func obey(_ name: String, _ wire: JSONValue, at now: Moment) -> [Reaction] {
    if form == .shade, name == "command" { return move(wire.string ?? "", at: now) }
    if form == .relay, case .boolean(let flag) = wire { return report(name, .boolean(flag)) }
    if let number = wire.double {
      let isLimited = name != "warmth"
      let end =
        isLimited
        ? min(max(number, temper.reach.lowerBound), temper.reach.upperBound) : number
      if name == "position" { isStopped = false }
      return (end == number ? [] : [.clamped(name)])
        + travel(name, to: .number(end), asked: .number(number), at: now)
    }
    guard let text = wire.string else { return [] }
    if let color = Color(hex: text) {
      return travel(name, to: .color(color), asked: .color(color), at: now)
    }
    return report(name, .text(text))
  }

  private mutating func report(_ name: String, _ value: Value) -> [Reaction] {
    values[name] = value
    return [.reports(name, value)]
  }

  private mutating func move(_ word: String, at now: Moment) -> [Reaction] {
    switch word {
    case "OPEN", "CLOSE":
      isStopped = false
      let end = Value.number(word == "OPEN" ? 100 : 0)
      return travel("position", to: end, asked: nil, at: now)
    case "STOP":
      isStopped = true
      guard let value = value("position", at: now) else { return [] }
      motions["position"] = nil
      return report("position", value)
    default: return []
    }
  }

  private mutating func travel(
    _ name: String,
    to end: Value,
    asked: Value?,
    at now: Moment
  ) -> [Reaction] {
    guard let start = value(name, at: now), temper.travel > 0, start != end else {
      motions[name] = nil
      return report(name, end)
    }
    var way = 1.0
    if case .number(let start) = start, case .number(let end) = end {
      way = (end - start).magnitude / (name == "brightness" ? 254 : name == "warmth" ? 350 : 100)
    }
    serial += 1
    let length = max(1, Int((Double(temper.travel) * way).rounded()))
    motions[name] = Motion(
      from: start,
      to: end,
      start: now,
      end: now.advanced(by: .milliseconds(length)),
      serial: serial,
      isPressed: asked == nil
    )
    let request = asked.flatMap { temper.repeatsRequest ? Reaction.reports(name, $0) : nil }
    return (request.map { [$0] } ?? []) + [.travels(name, serial: serial)]
  }

  // MARK: - Otherwise

  /// A hand moves it.
  mutating func moved(_ name: String, to value: Value, at now: Moment) -> [Reaction] {
    motions[name] = nil
    if name == "position" { isStopped = false }
    let restored = name == "power" && value == .boolean(true) ? restore(at: now) : []
    return report(name, value) + restored
  }

  /// Ends every motion where it is; returns the properties that have changed by it.
  mutating func losePower(at now: Moment) -> [String] {
    isPowered = false
    let moving = motions.keys.sorted()
    for name in moving { values[name] = value(name, at: now) }
    motions = [:]
    guard temper.isForgetful, form != .shade else { return moving }
    values = Self.defaults(of: form)
    return names
  }

  /// Its properties that it reports.
  var names: [String] { values.keys.sorted() }
}

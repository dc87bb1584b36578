// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
package import LastOut
internal import Values

/// The messages of one convention: the meaning of commands and the form of reports.
///
/// A convention is stateless; ``ConventionalDevice`` adds state and time.
package protocol WireConvention: Sendable {
  /// The topic filters for commands and queries.
  var subscriptions: [String] { get }

  /// The message that reports the device online or offline; the latter is its last will.
  ///
  /// `nil` for a device that reports neither.
  func availability(_ isOnline: Bool) -> DeviceMessage?

  /// The messages after a start, before the states: at least the availability.
  var greeting: [DeviceMessage] { get }

  /// The answer to a message; `nil` for a message that is not for the device.
  func answer(to message: DeviceMessage, memory: DeviceMemory) -> DeviceAnswer?

  /// The messages that report the state of a part.
  func report(of part: String, memory: DeviceMemory) -> [DeviceMessage]
}

extension WireConvention {
  package var greeting: [DeviceMessage] { [availability(true)].compactMap(\.self) }
}

/// Reads messages as devices do.
extension DeviceMessage {
  /// The levels of the topic below `prefix`; `nil` for any other topic.
  func levels(below prefix: String) -> [String]? {
    guard topic.hasPrefix(prefix + "/") else { return nil }
    return topic.dropFirst(prefix.count + 1).split(separator: "/").map(String.init)
  }

  /// The JSON object in the payload, if it is one.
  package var object: JSONValue? {
    guard let value = try? JSONParser.parse(payload.span), case .object = value else { return nil }
    return value
  }

  /// The number in the payload, if it is one.
  var number: Double? { NumberText.parse(payload.span).flatMap { $0.isFinite ? $0 : nil } }

  /// Whether the payload is `on` or `off`; `nil` if it is neither.
  func flag(on: String, off: String) -> Bool? {
    switch text {
    case on: true
    case off: false
    default: nil
    }
  }
}

/// The conventions with built-in profiles, by their names on the command line.
package enum ConventionName: String, CaseIterable, Sendable {
  case zigbee2mqtt
  case tasmota
  case shellyGen1 = "shelly-gen1"
  case shellyGen2 = "shelly-gen2"
  case esphome
  case wled
  case zwaveJS = "zwave-js"
  case homie
  case homeAssistant = "homeassistant"
  case frigate, evcc, opendtu, victron
}

/// The effect of a command on one value of a simulated device's part.
package struct DeviceChange: Sendable {
  package enum Kind: Sendable {
    /// Sets the value immediately.
    case set(JSONValue)
    /// Moves the value linearly in a given time.
    case move(to: Double, over: Duration)
    /// Moves the value linearly; a distance of 100 takes `whole`.
    case travel(to: Double, whole: Duration)
    /// Stops a movement.
    case stop
  }

  package let part: String
  package let name: String
  package let kind: Kind

  package init(_ part: String, _ name: String, _ kind: Kind) {
    self.part = part
    self.name = name
    self.kind = kind
  }

  /// Sets a value to the number in a message; `nil` if it is none.
  static func number(_ part: String, _ name: String, _ message: DeviceMessage) -> [DeviceChange]? {
    message.number.map { [DeviceChange(part, name, .set(JSONValue(shortest: $0)))] }
  }

  /// Opens, closes or stops a cover; `nil` for any other word.
  static func cover(_ part: String, _ word: String, whole: Duration) -> [DeviceChange]? {
    switch word {
    case "OPEN": [DeviceChange(part, "position", .travel(to: 100, whole: whole))]
    case "CLOSE": [DeviceChange(part, "position", .travel(to: 0, whole: whole))]
    case "STOP": [DeviceChange(part, "position", .stop)]
    default: nil
    }
  }

  /// Moves a cover to the position in a message; `nil` if it is no number.
  static func position(
    _ part: String,
    _ message: DeviceMessage,
    whole: Duration
  ) -> [DeviceChange]? {
    message.number.map { [DeviceChange(part, "position", .travel(to: $0, whole: whole))] }
  }
}

/// A simulated device's answer to a message.
package struct DeviceAnswer: Sendable {
  package var changes: [DeviceChange]
  /// The convention's own acknowledgement, sent before the state.
  package var acknowledgement: [DeviceMessage]
  /// Parts whose state was queried and is reported without a change.
  package var queriedParts: [String]
  /// Whether the message is an invalid command.
  package var isRefusal: Bool

  package init(
    _ changes: [DeviceChange] = [],
    acknowledgement: [DeviceMessage] = [],
    queriedParts: [String] = [],
    isRefusal: Bool = false
  ) {
    self.changes = changes
    self.acknowledgement = acknowledgement
    self.queriedParts = queriedParts
    self.isRefusal = isRefusal
  }

  /// The answer to an invalid command.
  package static func refused(_ messages: [DeviceMessage] = []) -> DeviceAnswer {
    DeviceAnswer(acknowledgement: messages, isRefusal: true)
  }
}

/// The values of a simulated device's parts at a time, some of which may be moving.
package struct DeviceMemory: Sendable {
  private enum StoredValue: Sendable {
    case resting(JSONValue)
    case moving(Ramp)
  }

  /// The time of the values.
  package internal(set) var now = Moment.zero
  private var parts: [String: [String: StoredValue]] = [:]

  /// Creates parts with constant values.
  package init(_ parts: [String: [String: JSONValue]]) {
    self.parts = parts.mapValues { $0.mapValues { .resting($0) } }
  }

  /// The names of the parts, in alphabetical order.
  package var partNames: [String] { parts.keys.sorted() }

  package func has(_ part: String, _ name: String? = nil) -> Bool {
    guard let values = parts[part] else { return false }
    return name.map { values[$0] != nil } ?? true
  }

  /// A value of a part, rounded to a whole number while it moves; null if there is none.
  package func value(_ part: String, _ name: String) -> JSONValue {
    switch parts[part]?[name] {
    case nil: .null
    case .resting(let value): value
    case .moving(let ramp):
      ramp.isMoving(at: now)
        ? .integer(Int64(ramp.value(at: now).rounded())) : JSONValue(shortest: ramp.to)
    }
  }

  /// A number of a part; 0 if there is none.
  package func number(_ part: String, _ name: String) -> Double {
    if case .moving(let ramp) = parts[part]?[name] { return ramp.value(at: now) }
    return value(part, name).double ?? 0
  }

  /// A value of a part as bare text.
  package func text(_ part: String, _ name: String) -> String {
    let value = value(part, name)
    return value.string ?? JSONWriter.text(value)
  }

  /// Those of the named values that a part has, as the members of an object.
  func members(_ part: String, _ names: [String]) -> [JSONValue.Member] {
    names.filter { has(part, $0) }.map { JSONValue.Member($0, value(part, $0)) }
  }

  package func isMoving(_ part: String) -> Bool {
    parts[part, default: [:]].values.contains {
      if case .moving(let ramp) = $0 { ramp.isMoving(at: now) } else { false }
    }
  }

  /// The end of the first movement of a part to end; `nil` if nothing moves.
  package func nextEnd(_ part: String) -> Moment? {
    parts[part, default: [:]].values.compactMap {
      if case .moving(let ramp) = $0, ramp.isMoving(at: now) { ramp.end } else { nil }
    }.min()
  }

  /// Applies a change; a change of an unknown part has no effect.
  package mutating func apply(_ change: DeviceChange) {
    guard has(change.part) else { return }
    let current = number(change.part, change.name)
    let stored: StoredValue =
      switch change.kind {
      case .set(let value): .resting(value)
      case .stop: .resting(.integer(Int64(current.rounded())))
      case .move(let target, let duration):
        duration > .zero
          ? .moving(Ramp(from: current, to: target, start: now, duration: duration))
          : .resting(JSONValue(shortest: target))
      case .travel(let target, let whole):
        .moving(Ramp(from: current, to: target, start: now, whole: whole))
      }
    parts[change.part]?[change.name] = stored
  }
}

/// A device of any convention, which executes commands after a delay and reports its state.
///
/// While something moves, it reports its state every ``reportInterval`` and once at the end.
package struct ConventionalDevice<Convention: WireConvention>: SimulatedDevice {
  /// The time from a command to its effect.
  package static var replyDelay: Duration { .milliseconds(20) }
  package static var reportInterval: Duration { .milliseconds(200) }

  package let convention: Convention
  package private(set) var memory: DeviceMemory
  package private(set) var tally = CommandTally()

  /// Answers that are not executed yet, oldest first.
  private var pending: [(due: Moment, answer: DeviceAnswer)] = []
  /// The time of the next report of each moving part.
  private var nextReports: [String: Moment] = [:]

  /// - Parameters:
  ///   - convention: The convention of its messages.
  ///   - parts: The initial values of its parts, by the convention's names for parts.
  package init(_ convention: Convention, parts: [String: [String: JSONValue]]) {
    self.convention = convention
    memory = DeviceMemory(parts)
  }

  package var subscriptions: [String] { convention.subscriptions }

  package var will: [DeviceMessage] { [convention.availability(false)].compactMap(\.self) }

  package var nextWake: Moment? {
    [pending.first?.due, nextReports.values.min()].compactMap { $0 }.min()
  }

  package mutating func start(at now: Moment) -> [DeviceMessage] {
    memory.now = now
    return convention.greeting + memory.partNames.flatMap { report($0) }
  }

  package mutating func receive(_ message: DeviceMessage, at now: Moment) -> [DeviceMessage] {
    memory.now = now
    guard let answer = convention.answer(to: message, memory: memory) else { return [] }
    if answer.isRefusal { tally.refused += 1 }
    if answer.queriedParts.isEmpty { tally.received += 1 }
    pending.append((now.advanced(by: Self.replyDelay), answer))
    return []
  }

  package mutating func wake(at now: Moment) -> [DeviceMessage] {
    memory.now = now
    var messages: [DeviceMessage] = []
    while let next = pending.first, next.due <= now {
      pending.removeFirst()
      for change in next.answer.changes { memory.apply(change) }
      messages += next.answer.acknowledgement
      let parts = next.answer.changes.map(\.part) + next.answer.queriedParts
      for part in parts.uniqued { messages += report(part) }
    }
    let moving = nextReports.filter { $0.value <= now }.keys.sorted()
    for part in moving { messages += report(part) }
    return messages
  }

  /// Creates the state messages of a part and schedules the next ones.
  private mutating func report(_ part: String) -> [DeviceMessage] {
    let next = memory.now.advanced(by: Self.reportInterval)
    nextReports[part] = memory.nextEnd(part).map { min(next, $0) }
    return convention.report(of: part, memory: memory)
  }
}

extension [String] {
  /// The elements in order, without duplicates.
  fileprivate var uniqued: [String] {
    reduce(into: []) { found, element in
      if !found.contains(element) { found.append(element) }
    }
  }
}

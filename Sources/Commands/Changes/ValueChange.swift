// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import JSON
package import LastOut
package import Values

/// What a requester asks of one key.
package enum ValueChange: Hashable, Sendable {
  /// A valid value of the property.
  case set(Value)
  /// An amount to add to what the key is, or will be once its commands are done.
  case step(Double)
  /// The opposite of what the key is, or will be once its commands are done.
  case toggle

  /// The absolute value, counted from `base`; `nil` when that is needed and unknown.
  ///
  /// - Throws: When the property has no such change, or its rule does not allow the value.
  func value(
    from base: Value?,
    of property: borrowing Property
  ) throws(ValidationError) -> Value? {
    switch self {
    case .set(let value): return value
    case .step(let amount):
      guard let base else { return nil }
      return try property.stepped(from: base, by: amount)
    case .toggle:
      guard let base else { return nil }
      return try property.toggled(from: base)
    }
  }

  /// Checks that the property can be stepped or toggled at all.
  ///
  /// - Throws: When the property has no such change.
  func check(_ property: borrowing Property) throws(ValidationError) {
    switch self {
    case .set: break
    case .step(let amount): _ = try property.stepped(from: .number(0), by: amount)
    case .toggle: _ = try property.toggled(from: .boolean(false))
    }
  }
}

/// An accepted value, with what its command and its events need.
struct PendingChange: Sendable {
  var value: Value
  /// Counts accepted changes; becomes the identifier where the requester gave none.
  var number: UInt64
  var acceptedAt: Moment
  /// Until when it may wait for an offline broker or device.
  var expiresAt: Moment
  var origin: ChangeOrigin?
  /// Members that are sent with the command, see ``Device/options``.
  var members: [JSONValue.Member]?
  /// Whether an earlier process accepted it.
  var isReplayed = false
  /// Whether it contradicts another value of its change, and is sent in that one's message or not
  /// at all.
  var rides = false
  /// Which flow it is of; see ``FlowNumbers``.
  var flow: UInt32 = 0
}

/// A step or toggle that waited for its device's state, as the value that it resulted in.
///
/// A recorder of accepted changes needs these apart: when such a step arrived, its value was not
/// known yet.
package struct AppliedStep: Sendable {
  package let key: KeyIndex
  /// The value that was accepted in its place.
  package let value: Value
  /// When the state arrived.
  package let at: Moment
  package let origin: ChangeOrigin?
  /// Whether the quiet period of the value was skipped.
  package let skipsQuiet: Bool

  init(_ step: WaitingSteps.Step, _ value: Value, of key: KeyIndex, at now: Moment) {
    self.key = key
    self.value = value
    at = now
    origin = step.options.origin
    skipsQuiet = step.options.skipsQuiet
  }
}

/// What a change carries beside its value.
///
/// A plain change passes them in registers: one more word, and each change copies them in memory.
package struct ChangeOptions: Sendable {
  package var origin: ChangeOrigin?
  /// How long the value may wait for an offline broker or device; `nil`: as the property says.
  package var ttl: Duration?
  /// Members that are sent with the command, see ``Device/options``.
  package var members: [JSONValue.Member]?
  package var quiet = QuietPeriod.normal
  /// Whether the value contradicts another one of the same change, see
  /// ``CommandStateMachine/stating(_:)``.
  package var rides = false

  package init(
    origin: ChangeOrigin? = nil,
    ttl: Duration? = nil,
    members: [JSONValue.Member]? = nil,
    skipsQuiet: Bool = false,
    isJoint: Bool = false
  ) {
    self.origin = origin
    self.ttl = ttl
    self.members = members
    quiet = skipsQuiet ? .skipped : isJoint ? .joint : .normal
  }

  /// Whether the quiet period is skipped.
  package var skipsQuiet: Bool { quiet == .skipped }

  /// The same, with the quiet period.
  package var withQuiet: ChangeOptions {
    var options = self
    options.quiet = .normal
    return options
  }

  /// The same, for a change whose quiet period grows because it is part of a feedback loop.
  package var slowed: ChangeOptions {
    var options = self
    options.quiet = .slowed
    return options
  }
}

/// How a value waits for quiet.
package enum QuietPeriod: Sendable {
  case normal
  case skipped
  /// Values that are accepted together wait for the longest of their quiet periods.
  case joint
  /// Like ``normal``, and the value does not lead its burst.
  case slowed
}

/// Who asked for a change, and where the answer goes; absent for a plain MQTT message.
package final class ChangeOrigin: Sendable {
  /// The source of what a device gets back that had lost its power.
  package static let restore = "restore"

  /// The caller's own id for the command, a text or a number.
  package let id: JSONValue?
  package let source: String?
  /// The person who asked, where that is known.
  package let by: String?
  /// The surface's number for the requester that waits for the reply; 0 when none does.
  package let replyTo: UInt64
  /// Whether they want every later phase too, not only the answer.
  package let wantsPhases: Bool
  /// How many properties the change sets at one instant, each with an answer of its own; 0 for one.
  package let parts: Int
  /// The command of a group that the change is a part of, or whose message may carry it.
  package let group: GroupPart?
  /// MQTT 5: where the final event goes, and what goes with it.
  package let responseTopic: String?
  package let correlationData: [UInt8]?

  package init(
    id: JSONValue? = nil,
    source: String? = nil,
    by: String? = nil,
    replyTo: UInt64 = 0,
    wantsPhases: Bool = false,
    parts: Int = 0,
    group: GroupPart? = nil,
    responseTopic: String? = nil,
    correlationData: [UInt8]? = nil
  ) {
    self.id = id
    self.source = source
    self.by = by
    self.replyTo = replyTo
    self.wantsPhases = wantsPhases
    self.parts = parts
    self.group = group
    self.responseTopic = responseTopic
    self.correlationData = correlationData
  }

  /// The command of a group that the change is a part of.
  package var groupCommand: GroupPart? { group?.name == nil ? nil : group }

  /// An origin with an id and a group of its own, and otherwise that of a change.
  package init(of origin: ChangeOrigin?, id: JSONValue?, group: GroupPart?) {
    self.id = id
    source = origin == nil ? "mqtt" : origin?.source
    by = origin?.by
    replyTo = origin?.replyTo ?? 0
    wantsPhases = origin?.wantsPhases ?? false
    parts = origin?.parts ?? 0
    self.group = group
    responseTopic = origin?.responseTopic
    correlationData = origin?.correlationData
  }
}

/// The command of a group, as the changes of its members name it.
package struct GroupPart: Sendable {
  /// The group's key.
  package let key: KeyIndex
  /// The number of the group's command.
  package let number: UInt64
  /// The id of the group; `nil` where nobody asked for the group, but its message may carry the
  /// values that all of its members get.
  package let name: String?

  package init(key: KeyIndex, number: UInt64, name: String?) {
    self.key = key
    self.number = number
    self.name = name
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
package import LastOut

/// Who asked for a change, and where the answer goes; absent for a plain MQTT message.
package final class ChangeOrigin: Sendable {
  /// The caller's own id for the command, a text or a number.
  package let id: JSONValue?
  package let source: String?
  /// The surface's number for the requester that waits for the reply; 0 when none does.
  package let replyTo: UInt64
  /// Whether they want every later phase too, not only the answer.
  package let wantsPhases: Bool
  /// How many properties the change sets at one instant, each with an answer of its own; 0 for one.
  package let parts: Int
  /// The command of a group that the change is a part of.
  package let group: GroupPart?
  /// MQTT 5: where the final event goes, and what goes with it.
  package let responseTopic: String?
  package let correlationData: [UInt8]?

  package init(
    id: JSONValue? = nil,
    source: String? = nil,
    replyTo: UInt64 = 0,
    wantsPhases: Bool = false,
    parts: Int = 0,
    group: GroupPart? = nil,
    responseTopic: String? = nil,
    correlationData: [UInt8]? = nil
  ) {
    self.id = id
    self.source = source
    self.replyTo = replyTo
    self.wantsPhases = wantsPhases
    self.parts = parts
    self.group = group
    self.responseTopic = responseTopic
    self.correlationData = correlationData
  }
}

/// The command of a group, as the changes of its members name it.
package struct GroupPart: Sendable {
  /// The group's key.
  package let key: KeyIndex
  /// The number of the group's command.
  package let number: UInt64
  /// The id of the group.
  package let name: String

  package init(key: KeyIndex, number: UInt64, name: String) {
    self.key = key
    self.number = number
    self.name = name
  }
}

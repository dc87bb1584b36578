// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON

/// What Shelly devices are asked for, because they announce themselves only when asked.
///
/// Source: `shellies/command` of the first generation, and `Shelly.GetConfig` and
/// `Shelly.GetDeviceInfo` of the later ones, as ha-shellies-discovery and its successor use them.
package struct ShellyQuestions: Sendable {
  /// A message that asks.
  package struct Question: Hashable, Sendable {
    package let topic: String
    package let payload: [UInt8]
  }

  /// Where devices of later generations reply, with `/rpc` behind it.
  static let source = "settle-import"
  static let announcement = "shellies/announce"
  static let reply = "\(source)/rpc"
  private static let presence = "/online"

  /// The topic filters of announcements, replies and devices that may be asked.
  static let filters = [announcement, reply, "+\(presence)", "+/+\(presence)"]

  private var asked: Set<String> = []

  package init() {}

  /// The question to all devices of the first generation.
  package let first = Question(topic: "shellies/command", payload: Array("announce".utf8))

  /// What a device is asked that said on this topic that it is online; nothing for any other.
  package mutating func questions(after message: Announcement) -> [Question] {
    guard message.topic.hasSuffix(Self.presence), !message.topic.hasPrefix("shellies/"),
      message.payload == Array("true".utf8)
    else { return [] }
    let prefix = String(message.topic.dropLast(Self.presence.count))
    guard asked.insert(prefix).inserted, TopicName.problem("\(prefix)/rpc") == nil else {
      return []
    }
    return ["Shelly.GetDeviceInfo", "Shelly.GetConfig"].enumerated().map { number, method in
      let request = JSONValue.object([
        "id": .integer(Int64(number + 1)), "src": .string(Self.source), "method": .string(method),
      ])
      return Question(topic: "\(prefix)/rpc", payload: JSONWriter.bytes(request))
    }
  }
}

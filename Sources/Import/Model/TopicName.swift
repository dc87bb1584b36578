// Settle
// SPDX-License-Identifier: Apache-2.0

internal import MQTT
internal import MQTTTopics

/// Whether an announced topic can be one of ours.
enum TopicName {
  /// Why a command could not be published to `topic`; `nil` if it could.
  static func problem(_ topic: String) -> String? {
    guard topic.utf8.count <= 1000 else {
      return "a topic of \(topic.utf8.count) bytes; at most 1000 are taken"
    }
    return Topic.problem(inName: topic)
  }
}

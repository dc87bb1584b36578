// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
internal import JSON
internal import MQTT
internal import Values

/// A retained message that announces devices.
package struct Announcement: Hashable, Sendable {
  package var topic: String
  package var payload: [UInt8]

  /// The maximum payload size in bytes; `bridge/devices` of 500 devices has about 5 MB.
  static let largestPayload = 8 << 20

  package init(topic: String, payload: [UInt8]) {
    self.topic = topic
    self.payload = payload
  }

  package init(topic: String, text: String) {
    self.init(topic: topic, payload: Array(text.utf8))
  }

  /// Parses the payload.
  func json() -> Result<JSONValue, Unreadable> {
    guard payload.count <= Self.largestPayload else {
      let limit = Self.largestPayload >> 20
      return .failure(
        Unreadable(reason: "\(payload.count) bytes; the limit is \(limit) MiB")
      )
    }
    do throws(JSONParseError) {
      return .success(try JSONParser.parse(payload.span))
    } catch {
      return .failure(Unreadable(reason: "not JSON: \(Excerpt.of(error.description, limit: 160))"))
    }
  }

  struct Unreadable: Error {
    let reason: String
  }
}

/// The rules for topics in announcements.
enum TopicName {
  /// Why commands cannot be published to `topic`; `nil` if they can.
  static func problem(_ topic: String) -> String? {
    guard topic.utf8.count <= 1000 else {
      return "a topic of \(topic.utf8.count) bytes; at most 1000 are accepted"
    }
    return Topic.problem(inName: topic)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// A row of `{"dry_run":[…]}`: a message that values would be sent in, if they were sent now.
package struct MessagePreview: Hashable, Sendable {
  /// The first of the keys that were asked for.
  package var key: String
  /// Its value after steps are added and the number is snapped to its step.
  package var value: JSONValue
  package var topic: String
  /// The payload as text; bytes that are no UTF-8 do not occur.
  package var payload: String
  package var qos: Int
  /// The keys whose values the message has: those asked for, and pending ones that are merged with
  /// them.
  package var keys: [String]
  /// Why the value would not be sent now; `nil` if it would.
  package var reason: String?

  package init(
    key: String,
    value: JSONValue,
    topic: String,
    payload: String,
    qos: Int,
    keys: [String],
    reason: String?
  ) {
    self.key = key
    self.value = value
    self.topic = topic
    self.payload = payload
    self.qos = qos
    self.keys = keys
    self.reason = reason
  }

  package var json: JSONValue {
    .object([
      "key": .string(key), "value": value, "topic": .string(topic), "payload": .string(payload),
      "qos": .count(qos), "keys": .texts(keys), "reason": .text(reason),
    ])
  }

  /// Reads a body; `nil` when a member is missing.
  package init?(_ json: JSONValue) {
    guard let key = json["key"]?.string, let value = json["value"],
      let topic = json["topic"]?.string, let payload = json["payload"]?.string
    else { return nil }
    self.init(
      key: key,
      value: value,
      topic: topic,
      payload: payload,
      qos: json["qos"]?.count ?? 0,
      keys: json.texts("keys"),
      reason: json["reason"]?.string
    )
  }
}

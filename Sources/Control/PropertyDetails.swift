// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
internal import Values

/// What `describe` of a single key says beside its ``PropertyRow``: topics, and the message that
/// would be sent.
package struct PropertyDetails: Hashable, Sendable {
  /// A topic on which the device reports the property.
  package struct Source: Hashable, Sendable {
    package var topic: String
    /// Where the value is in the payload, as a JSON Pointer.
    package var pointer: String
    /// Whether it only acknowledges commands.
    package var acknowledges: Bool

    package init(topic: String, pointer: String, acknowledges: Bool) {
      self.topic = topic
      self.pointer = pointer
      self.acknowledges = acknowledges
    }
  }

  /// `nil` where the device has none.
  package var lane: String?
  /// How long a value may wait for an offline broker or device.
  package var ttlMilliseconds: Int
  /// The keys that a group's key stands for; empty for any other.
  package var members: [String] = []
  /// Where commands go.
  package var commandTopic: String
  package var qos: Int
  package var states: [Source] = []
  /// Topics that say whether the device is online.
  package var availability: [String] = []
  /// The topic on which a device that sleeps reports itself.
  package var awake: String?
  package var retries = 0
  /// Keys that cannot be pending together with this one.
  package var excludes: [String] = []
  /// The values that other keys take when a value of this one is sent, by key.
  package var implies: [JSONValue.Member] = []
  /// How long a person's change keeps other sources away; `nil` where it does not.
  package var holdMilliseconds: Int?
  /// The sources of changes that count as a person's, where there is a hold.
  package var hands: [String] = []
  /// Who holds the property now; `nil` when nobody does.
  package var heldBy: String?
  /// How much longer.
  package var heldMilliseconds: Int?
  /// Why nothing can be sent at the moment; `nil` if it can.
  package var obstacle: String?
  /// The message for the value that the key shows, or for one that it may have.
  package var message: MessagePreview?

  package init(commandTopic: String, qos: Int, ttlMilliseconds: Int) {
    self.commandTopic = commandTopic
    self.qos = qos
    self.ttlMilliseconds = ttlMilliseconds
  }

  var jsonMembers: [JSONValue.Member] {
    let sources = states.map { source -> JSONValue in
      .object([
        "topic": .string(source.topic), "value": .string(source.pointer),
        "acknowledges": .boolean(source.acknowledges),
      ])
    }
    return [
      .init("lane", .text(lane)), .init("ttl_ms", .count(ttlMilliseconds)),
      .init("out", .object(["topic": .string(commandTopic), "qos": .count(qos)])),
      .init("in", .array(sources)), .init("availability", .texts(availability)),
      .init("awake", .text(awake)),
      .init("retries", .count(retries)), .init("excludes", .texts(excludes)),
      .init("implies", .object(implies)),
      .init("hold_ms", holdMilliseconds.map { .count($0) } ?? .null), .init("hands", .texts(hands)),
      .init("held_by", .text(heldBy)),
      .init("held_ms", heldMilliseconds.map { .count($0) } ?? .null),
      .init("obstacle", .text(obstacle)), .init("members", .texts(members)),
      .init("message", message?.json ?? .null),
    ]
  }

  /// Reads the members of a row; `nil` for a row without details.
  init?(_ json: JSONValue) {
    guard let out = json["out"], let topic = out["topic"]?.string else { return nil }
    self.init(
      commandTopic: topic,
      qos: out["qos"]?.count ?? 0,
      ttlMilliseconds: json["ttl_ms"]?.count ?? 0
    )
    lane = json["lane"]?.string
    states = json.rows("in") { row in
      row["topic"]?.string.map {
        Source(
          topic: $0,
          pointer: row["value"]?.string ?? "",
          acknowledges: row["acknowledges"] == true
        )
      }
    }
    availability = json.texts("availability")
    awake = json["awake"]?.string
    retries = json["retries"]?.count ?? 0
    excludes = json.texts("excludes")
    if case .object(let values)? = json["implies"] { implies = values }
    holdMilliseconds = json["hold_ms"]?.count
    hands = json.texts("hands")
    members = json.texts("members")
    heldBy = json["held_by"]?.string
    heldMilliseconds = json["held_ms"]?.count
    obstacle = json["obstacle"]?.string
    message = json["message"].flatMap(MessagePreview.init)
  }
}

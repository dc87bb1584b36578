// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
package import LastOut

/// A route: messages on one topic filter, debounced and published on another.
package struct RouteConfiguration: Hashable, Sendable {
  package struct End: Hashable, Sendable {
    /// `nil` for the main broker.
    package var broker: String?
    package var topic: String
    package init(broker: String? = nil, topic: String) {
      self.broker = broker
      self.topic = topic
    }
  }
  package var from: End
  package var to: End
  /// `nil` (`policy: none`) forwards every message and keeps its retain flag.
  package var policy: Policy?
  /// Whether pending JSON objects merge, the newest value of each member winning (`merge: json`).
  package var mergesJSON = false
  /// Messages that flush their topic and are then forwarded immediately.
  package var pass: [MessagePattern] = []
  /// Messages that drop what waits on their topic and are then forwarded, ahead of other topics.
  package var urgent: [MessagePattern] = []
  /// The quiet period of messages without a number, such as `ON`; `nil` for that of the policy.
  package var wordDelay: Duration?
  package var qos = 1
  /// Whether messages are announcements to Home Assistant, whose command topics are rewritten to
  /// the inputs of the routes that lead to them.
  package var announces = false
  /// What the output shows once the gateway is gone, retained.
  package var will: String?
  package init(from: End, to: End, policy: Policy?) {
    self.from = from
    self.to = to
    self.policy = policy
  }

  /// Where this route sends `topic`; `nil` when it does not match.
  func destination(of topic: String) -> String? {
    guard let captures = Topic.captures(filter: from.topic, name: topic),
      let destination = Topic.fill(template: to.topic, with: captures),
      Topic.problem(inName: destination) == nil
    else { return nil }
    return destination
  }
}

/// What a route recognizes a message by, in `pass` and `urgent`.
package enum MessagePattern: Hashable, Sendable {
  /// `STOP`: the whole payload.
  case payload([UInt8])
  /// `/brightness_step`: a JSON object that has this member.
  case member(JSONPointer)
  /// `{/state: STOP}`: a JSON object whose member has this value.
  case value(JSONPointer, JSONValue)

  /// Whether only the payload as JSON can match.
  var needsDocument: Bool {
    switch self {
    case .payload: false
    case .member, .value: true
    }
  }

  /// Whether a message matches; `document` is its payload as JSON, if it is JSON.
  func matches(_ payload: Span<UInt8>, _ document: JSONValue?) -> Bool {
    switch self {
    case .payload(let bytes): Bytes.areEqual(payload, bytes)
    case .member(let pointer): document.flatMap { pointer.value(in: $0) } != nil
    case .value(let pointer, let value): document.flatMap { pointer.value(in: $0) } == value
    }
  }
}

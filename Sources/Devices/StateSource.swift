// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// Where a device reports a property.
package struct StateSource: Hashable, Sendable {
  package var topic: String
  package var value: JSONPointer
  /// What to publish once when connected, to be told the state.
  package var get: StateRequest?
  /// The device says there which value it has taken, not which it has: a word that confirms a
  /// command and tells nothing else.
  package var acknowledges: Bool
  /// Where a reply has the number of the message that it answers, if replies come there.
  package var reply: ReplySource?

  package init(
    topic: String,
    value: JSONPointer,
    get: StateRequest? = nil,
    acknowledges: Bool = false,
    reply: ReplySource? = nil
  ) {
    self.topic = topic
    self.value = value
    self.get = get
    self.acknowledges = acknowledges
    self.reply = reply
  }
}

/// Where a reply says which message it answers, and that it could not be carried out.
package struct ReplySource: Hashable, Sendable {
  package var id: JSONPointer
  /// Present only in a reply that refuses.
  package var error: JSONPointer?

  package init(id: JSONPointer, error: JSONPointer? = nil) {
    self.id = id
    self.error = error
  }
}

/// A message that asks a device for its state.
package struct StateRequest: Hashable, Sendable {
  package var topic: String
  package var payload: [UInt8]

  package init(topic: String, payload: [UInt8]) {
    self.topic = topic
    self.payload = payload
  }
}

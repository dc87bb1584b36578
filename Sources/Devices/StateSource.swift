// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// A topic on which a device reports a property.
package struct StateSource: Hashable, Sendable {
  package var topic: String
  /// Where the value is in the payload.
  package var value: JSONPointer
  /// A request for the state, published once after connecting.
  package var get: StateRequest?
  /// Whether the topic only acknowledges commands.
  ///
  /// An acknowledgement confirms a command but does not change the actual value.
  package var acknowledges: Bool
  /// Where replies identify the message that they answer, if the topic carries replies.
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

  /// What a message on a state topic says of a property.
  package enum Reading {
    /// The value, as found on the wire.
    case value(JSONValue)
    /// Nothing: a device may report some of its properties in a message.
    case nothing
    /// The payload is a word or a number, and no JSON in which there could be a value.
    case unreadable
  }

  /// Finds the value in a message on the topic.
  package func reading(of document: JSONValue) -> Reading {
    if let wire = value.value(in: document) { return .value(wire) }
    return switch document {
    case .object, .array, .null: .nothing
    case .boolean, .integer, .number, .string: .unreadable
    }
  }
}

/// The parts of a device's reply: the number of the message it answers, and its error.
package struct ReplySource: Hashable, Sendable {
  package var id: JSONPointer
  /// Where a reply to a refused command has its error; only such a reply has a value there.
  package var error: JSONPointer?

  package init(id: JSONPointer, error: JSONPointer? = nil) {
    self.id = id
    self.error = error
  }
}

/// A message that requests the state of a device.
package struct StateRequest: Hashable, Sendable {
  private enum Content: Hashable {
    case bytes([UInt8])
    case object([JSONValue.Member])
  }

  package var topic: String
  private var content: Content

  package init(topic: String, payload: [UInt8]) {
    self.topic = topic
    content = .bytes(payload)
  }

  /// A request whose payload is a JSON object, which can share a message with others.
  package init(topic: String, members: [JSONValue.Member]) {
    self.topic = topic
    content = .object(members)
  }

  package var payload: [UInt8] {
    switch content {
    case .bytes(let bytes): bytes
    case .object(let members): JSONWriter.bytes(.object(members))
    }
  }

  /// The members of a payload that can be merged with those of other requests; else `nil`.
  package var members: [JSONValue.Member]? {
    switch content {
    case .bytes: nil
    case .object(let members): members
    }
  }
}

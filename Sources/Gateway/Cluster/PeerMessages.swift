// Settle
// SPDX-License-Identifier: Apache-2.0

import Engine

/// What one member of a cluster says to another, in one message: requests, and replies to them.
///
/// A byte for the version, the sender's name, and entries: a byte for the kind, the request's
/// number as its sender counts them, a byte of flags, and a line of the control socket's protocol.
struct PeerMessage {
  enum Kind: UInt8 {
    case request = 1
    case reply = 2
    /// The request was not accepted, because its receiver does not drive the device.
    case moved = 3
  }

  struct Flags: OptionSet {
    let rawValue: UInt8
    /// No reply follows.
    static let last = Flags(rawValue: 1)
    /// The event ends its command.
    static let final = Flags(rawValue: 2)
  }

  struct Entry {
    var kind: Kind
    var number: UInt64
    var flags: Flags = []
    var line: [UInt8] = []
  }

  static let version: UInt8 = 1

  let sender: String
  let entries: [Entry]

  /// Reads a message; `nil` if it is none of this version.
  init?(_ bytes: [UInt8]) {
    var reader = ByteReader(bytes)
    guard reader.byte() == Self.version, let sender = reader.text() else { return nil }
    var entries: [Entry] = []
    while !reader.isAtEnd {
      guard let kind = reader.byte().flatMap(Kind.init), let number = reader.number(),
        let flags = reader.byte(), let line = reader.bytes()
      else { return nil }
      entries.append(Entry(kind: kind, number: number, flags: Flags(rawValue: flags), line: line))
    }
    self.sender = sender
    self.entries = entries
  }

  /// The beginning of a message.
  static func beginning(from sender: String) -> ByteWriter {
    var writer = ByteWriter()
    writer.bytes.append(version)
    writer.append(sender)
    return writer
  }

  static func append(_ entry: Entry, to writer: inout ByteWriter) {
    writer.bytes.append(entry.kind.rawValue)
    writer.append(entry.number)
    writer.bytes.append(entry.flags.rawValue)
    writer.append(entry.line)
  }
}

/// What a member tells all others.
///
/// A byte for the version, the sender's name, a byte for the kind, and the content.
struct PeerBroadcast {
  enum Kind: UInt8 {
    /// Tell what the keys of the devices that you drive show.
    case hello = 1
    /// What keys show, and which devices are online; see ``PeerRows``.
    case rows = 2
    /// Someone wants every event, for some seconds.
    case wantsEvents = 3
    /// Events, each a line.
    case events = 4
  }

  let sender: String
  let kind: Kind
  var content: ByteReader

  init?(_ bytes: [UInt8]) {
    var reader = ByteReader(bytes)
    guard reader.byte() == PeerMessage.version, let sender = reader.text(),
      let kind = reader.byte().flatMap(Kind.init)
    else { return nil }
    self.sender = sender
    self.kind = kind
    content = reader
  }

  static func beginning(_ kind: Kind, from sender: String) -> ByteWriter {
    var writer = PeerMessage.beginning(from: sender)
    writer.bytes.append(kind.rawValue)
    return writer
  }
}

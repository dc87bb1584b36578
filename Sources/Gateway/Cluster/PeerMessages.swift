// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Engine
import JSON
import LastOut
import Operations

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

/// Sends messages to other members: what is said in one batch of events goes in one message.
final class PeerLink {
  private let member: String
  private let engine: ClusterEngine
  private var outgoing: [String: (writer: ByteWriter, requests: [UInt64])] = [:]
  /// Requests in a message that nobody has received.
  var onUndelivered: ((_ requests: [UInt64]) -> Void)?

  init(member: String, engine: ClusterEngine) {
    self.member = member
    self.engine = engine
  }

  /// What an entry adds to its line, at most, with the beginning of the message.
  private static let overhead = 512

  /// Whether a line is not longer than a message may be.
  func canCarry(_ line: [UInt8]) -> Bool { line.count + Self.overhead <= engine.largestMessage }

  func append(_ entry: PeerMessage.Entry, to other: String) {
    let size = entry.line.count + Self.overhead
    if let (writer, _) = outgoing[other], writer.bytes.count + size > engine.largestMessage {
      send(to: other)
    }
    var (writer, requests) =
      outgoing.removeValue(forKey: other)
      ?? (PeerMessage.beginning(from: member), [])
    PeerMessage.append(entry, to: &writer)
    if entry.kind == .request { requests.append(entry.number) }
    outgoing[other] = (writer, requests)
  }

  /// Sends what was appended.
  func flush() { for other in outgoing.keys.sorted() { send(to: other) } }

  private func send(to other: String) {
    guard let (writer, requests) = outgoing.removeValue(forKey: other) else { return }
    engine.send(writer.bytes, to: other) { [weak self] delivery in
      guard !requests.isEmpty else { return }
      switch delivery {
      case .notReceived: self?.onUndelivered?(requests)
      case .received, .unknown: break  // An answer comes, or the member's end.
      }
    }
  }
}

/// Events of the other members, for those who watch here; and those of this member, for those who
/// watch there.
final class PeerEvents {
  /// How often a member that wants events says so, and how long that counts.
  private static let renewal = Duration.seconds(3)
  private static let validity = Duration.seconds(10)
  private static let size = 256 * 1024

  private let member: String
  private let engine: ClusterEngine
  /// Until when each other member wants events.
  private var wanted: [String: Moment] = [:]
  /// Whether someone watches here.
  private(set) var wantsEvents = false
  private var saidAt: Moment?
  private var outgoing: ByteWriter?
  private var count = 0
  /// An event of another member.
  var onEvent: ((EventObject) -> Void)?
  /// Whether other members want this one's events has changed.
  var onWanted: (() -> Void)?

  init(_ context: GatewayContext, member: String, engine: ClusterEngine) {
    self.member = member
    self.engine = engine
  }

  /// Whether another member wants every event.
  var areWanted: Bool { !wanted.isEmpty }

  /// Someone watches here, or nobody does.
  func setWanted(_ isWanted: Bool) {
    wantsEvents = isWanted
    if !isWanted { saidAt = nil }
  }

  /// Another member wants events.
  func areWanted(by other: String, at now: Moment) {
    let wereWanted = areWanted
    wanted[other] = now.advanced(by: Self.validity)
    if !wereWanted { onWanted?() }
  }

  /// An event of this member.
  func append(_ event: EventObject) {
    guard areWanted else { return }
    if let outgoing, outgoing.bytes.count > Self.size { send() }
    var writer = outgoing ?? PeerBroadcast.beginning(.events, from: member)
    writer.append(event.bytes)
    outgoing = writer
  }

  private func send() {
    if let outgoing { engine.broadcast(outgoing.bytes) }
    outgoing = nil
  }

  func receive(_ content: inout ByteReader) {
    guard wantsEvents else { return }
    while let line = content.bytes() {
      guard let json = try? JSONParser.parse(line.span), let event = EventObject(json) else {
        return
      }
      onEvent?(event)
    }
  }

  var nextDeadline: Moment? {
    let renewal = wantsEvents ? saidAt.map { $0.advanced(by: Self.renewal) } ?? .zero : nil
    return Moment.earlier(renewal, wanted.values.min())
  }

  func flush(at now: Moment) {
    send()
    if wantsEvents, saidAt.map({ $0.advanced(by: Self.renewal) <= now }) ?? true {
      saidAt = now
      engine.broadcast(PeerBroadcast.beginning(.wantsEvents, from: member).bytes)
    }
    guard wanted.contains(where: { $0.value <= now }) else { return }
    wanted = wanted.filter { $0.value > now }
    if wanted.isEmpty { onWanted?() }
  }
}

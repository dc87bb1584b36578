// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Engine
import JSON
import JSONParsing
import LastOut
import Operations

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

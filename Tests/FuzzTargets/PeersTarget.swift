// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import Engine
import GatewayCore
import LastOut
import Operations

@testable import Engine
@testable import Gateway

/// What other members of a cluster send: a byte, `m` for a message to this member and `b` for one
/// to all, and the message.
enum PeersTarget {
  static let run: @Sendable ([UInt8]) -> Void = { bytes in
    switch bytes.first {
    case UInt8(ascii: "m"): receive(message: Array(bytes.dropFirst()))
    case UInt8(ascii: "b"): receive(broadcast: Array(bytes.dropFirst()))
    default: return
    }
  }

  /// What can be read is written as bytes that read the same.
  private static func receive(message bytes: [UInt8]) {
    guard let message = PeerMessage(bytes) else { return }
    var writer = PeerMessage.beginning(from: message.sender)
    for entry in message.entries { PeerMessage.append(entry, to: &writer) }
    guard let again = PeerMessage(writer.bytes) else { fatalError("A message cannot be read.") }
    precondition(again.sender == message.sender && again.entries.count == message.entries.count)
    for (one, other) in zip(again.entries, message.entries) {
      precondition(
        one.kind == other.kind && one.number == other.number && one.flags == other.flags
          && one.line == other.line,
        "An entry reads as another."
      )
      if one.kind == .request { _ = try? ControlRequest(line: one.line.span) }
    }
  }

  private static func receive(broadcast bytes: [UInt8]) {
    guard var broadcast = PeerBroadcast(bytes) else { return }
    FuzzGateway.with { host in
      let context = host.context
      for device in context.registry.deviceNumbers {
        context.core.setElsewhere(true, device: device)
      }
      switch broadcast.kind {
      case .rows:
        let rows = PeerRows(context, member: "a", engine: unsafe engine)
        rows.receive(&broadcast.content) { _ in true }
        for place in context.registry.properties.indices {
          _ = context.core.status(KeyIndex(Int32(place)))
        }
      case .events:
        let events = PeerEvents(context, member: "a", engine: unsafe engine)
        events.setWanted(true)
        events.onEvent = { precondition(!$0.bytes.contains(0x0A), "An event is one line.") }
        events.receive(&broadcast.content)
      case .hello, .wantsEvents: break
      }
    }
  }

  /// An engine without servers: nothing is sent.
  // The fuzzer has one thread.
  nonisolated(unsafe) private static let engine: ClusterEngine = {
    let settings = EngineSettings(
      cluster: "fuzz",
      connection: NATSSettings(servers: ["nats://127.0.0.1:1"], name: "fuzz")
    )
    do throws(EngineRefusal) {
      return try ClusterEngine(
        settings,
        member: "a",
        loop: unsafe loop,
        log: Logger(level: .error) { _ in }
      )
    } catch {
      fatalError(error.description)
    }
  }()

  nonisolated(unsafe) private static let loop: EventLoop = {
    do throws(OperationsError) {
      return try EventLoop()
    } catch {
      fatalError(error.description)
    }
  }()
}

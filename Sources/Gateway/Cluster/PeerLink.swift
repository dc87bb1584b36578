// Settle
// SPDX-License-Identifier: Apache-2.0

import Engine

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

  func append(_ entry: PeerMessage.Entry, to other: String) {
    let size = entry.line.count + 32
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

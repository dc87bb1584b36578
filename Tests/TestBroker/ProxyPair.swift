// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut

/// One connection through a ``FaultProxy``: a client's socket, the broker's, and the data in
/// between.
final class ProxyPair {
  /// Delayed bytes; empty for the end of the stream.
  private struct Chunk {
    var bytes: ArraySlice<UInt8>
    var due: Moment
  }

  /// One direction.
  private struct Channel {
    var chunks: [Chunk] = []
    /// The reading side has reached the end of the stream.
    var isRead = false
    /// The end has been passed to the other side.
    var isOver = false
  }

  private var channels: [FaultProxy.Direction: Channel] = [
    .toBroker: Channel(), .toClient: Channel(),
  ]
  private var splitter = PacketSplitter()
  /// Parses the client's packets.
  private var listener = PacketSplitter()
  /// Identifiers of publishes whose acknowledgement is dropped.
  private var doomed: Set<UInt16> = []
  private let client: Int32
  /// -1 where there is none.
  private let broker: Int32
  private(set) var isEnded = false

  /// - Parameters:
  ///   - client: The socket of the client.
  ///   - broker: That of the broker; `nil` for a connection that leads nowhere.
  init(client: Int32, broker: Int32?) {
    self.client = client
    self.broker = broker ?? -1
    for descriptor in [client, self.broker] where descriptor >= 0 {
      _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
      var yes: Int32 = 1
      unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, 4)
    }
  }

  /// The events to wait for, the client's socket first.
  func requests(at now: Moment) -> [pollfd] {
    [
      request(client, reads: .toBroker, writes: .toClient, at: now),
      request(broker, reads: .toClient, writes: .toBroker, at: now),
    ]
  }

  private func request(
    _ descriptor: Int32,
    reads: FaultProxy.Direction,
    writes: FaultProxy.Direction,
    at now: Moment
  ) -> pollfd {
    var events: Int32 = 0
    if channels[reads]?.isRead == false { events |= POLLIN }
    if let due = channels[writes]?.chunks.first?.due, due <= now { events |= POLLOUT }
    // Without events a socket that has hung up would be reported again and again.
    return pollfd(fd: events == 0 ? -1 : descriptor, events: Int16(events), revents: 0)
  }

  /// When the next delayed bytes are due; `nil` if there are none.
  func nextDue(after now: Moment) -> Moment? {
    channels.values.compactMap { $0.chunks.first?.due }.filter { $0 > now }.min()
  }

  /// The bytes that have arrived; empty at the end.
  func read(from way: FaultProxy.Direction) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    let count = unsafe Glibc.read(way == .toBroker ? client : broker, &bytes, bytes.count)
    if count <= 0 { channels[way]?.isRead = true }
    return Array(bytes.prefix(max(count, 0)))
  }

  /// Passes bytes on, or drops them; returns the number of packets dropped by type.
  func pass(
    _ bytes: [UInt8],
    _ way: FaultProxy.Direction,
    _ faults: inout FaultProxy.Faults,
    at now: Moment
  ) -> Int {
    guard !faults.lost.contains(way) else {
      // The end of the stream included: the other side does not see it.
      return 0
    }
    let due = now.advanced(by: faults.delay)
    // From the beginning of the stream, whatever the faults are then.
    if way == .toBroker { listen(to: bytes, &faults) }
    guard way == .toClient, !bytes.isEmpty else {
      channels[way]?.chunks.append(Chunk(bytes: bytes[...], due: due))
      return 0
    }
    var lost = 0
    for packet in splitter.take(bytes) {
      if packet.type == FaultProxy.publishAcknowledgement,
        doomed.remove(Self.number(at: packet.bytes.startIndex + 2, in: packet.bytes)) != nil
      {
        lost += 1
      } else if let left = faults.lostPackets[packet.type], left > 0 {
        faults.lostPackets[packet.type] = left - 1
        lost += 1
      } else {
        channels[way]?.chunks.append(Chunk(bytes: packet.bytes, due: due))
      }
    }
    return lost
  }

  /// Records publishes whose acknowledgement is dropped.
  private func listen(to bytes: [UInt8], _ faults: inout FaultProxy.Faults) {
    for packet in listener.take(bytes) where packet.type == 3 {
      // Behind the type and the length, whose last byte has no continuation bit.
      guard packet.bytes[packet.bytes.startIndex] & 0x06 != 0,
        let length = packet.bytes.dropFirst().firstIndex(where: { $0 < 0x80 })
      else { continue }
      let topic = length + 3
      let end = topic + Int(Self.number(at: length + 1, in: packet.bytes))
      let name = String(decoding: packet.bytes[topic..<end], as: UTF8.self)
      guard let left = faults.lostAcknowledgements[name], left > 0 else { continue }
      faults.lostAcknowledgements[name] = left - 1
      doomed.insert(Self.number(at: end, in: packet.bytes))
    }
  }

  private static func number(at place: Int, in bytes: ArraySlice<UInt8>) -> UInt16 {
    UInt16(bytes[place]) << 8 | UInt16(bytes[place + 1])
  }

  /// Writes the bytes whose delay is over.
  func write(at now: Moment) {
    for way in FaultProxy.Direction.allCases { write(way, at: now) }
    if channels.values.allSatisfy({ $0.isOver }) { end(isReset: false) }
  }

  private func write(_ way: FaultProxy.Direction, at now: Moment) {
    let descriptor = way == .toBroker ? broker : client
    while !isEnded, let chunk = channels[way]?.chunks.first, chunk.due <= now {
      guard !chunk.bytes.isEmpty else {
        channels[way]?.chunks.removeFirst()
        channels[way]?.isOver = true
        shutdown(descriptor, Int32(SHUT_WR))
        continue
      }
      let count = unsafe chunk.bytes.withUnsafeBytes {
        unsafe send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count < 0 {
        // A full socket is tried again when it has room.
        if errno != EAGAIN { end(isReset: true) }
        return
      }
      channels[way]?.chunks[0].bytes.removeFirst(count)
      if channels[way]?.chunks.first?.bytes.isEmpty == true { channels[way]?.chunks.removeFirst() }
    }
  }

  /// Closes both sides, with a reset instead of an orderly close if requested.
  func end(isReset: Bool) {
    guard !isEnded else { return }
    isEnded = true
    for descriptor in [client, broker] where descriptor >= 0 {
      if isReset {
        var now = linger(l_onoff: 1, l_linger: 0)
        let size = socklen_t(MemoryLayout<linger>.size)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, size)
      }
      close(descriptor)
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import TestBroker
import Testing

/// The proxy that other tests break their lines with.
@Suite(.blocking) struct FaultProxyTests {
  /// A client and a server, with the proxy between them.
  private final class Wire {
    let proxy: FaultProxy
    let client: Int32
    let server: Int32
    private let listener: Int32

    init(_ adjust: (inout FaultProxy.Faults) -> Void = { _ in }) throws {
      let made = try LoopbackPort.listener()
      listener = made.descriptor
      proxy = try FaultProxy(to: made.port)
      proxy.set(adjust)
      client = try #require(LoopbackPort.connected(to: proxy.port))
      server = Wait.forInput(of: listener) ? accept(listener, nil, nil) : -1
    }

    deinit {
      for descriptor in [client, server, listener] where descriptor >= 0 { close(descriptor) }
    }

    func put(_ bytes: [UInt8], into descriptor: Int32) {
      _ = unsafe send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// Exactly `count` bytes, fewer at the end of the stream; `nil` if they do not arrive in time.
    func take(_ count: Int, from descriptor: Int32, within limit: Duration) -> [UInt8]? {
      var found: [UInt8] = []
      while found.count < count {
        guard Wait.forInput(of: descriptor, within: limit) else { return nil }
        var bytes = [UInt8](repeating: 0, count: count - found.count)
        let came = unsafe recv(descriptor, &bytes, bytes.count, 0)
        guard came > 0 else { return found }
        found += bytes[..<came]
      }
      return found
    }
  }

  private static let publish: [UInt8] = [0x30, 3, 0, 1, 0x61]
  private static let acknowledgement: [UInt8] = [0x40, 2, 0, 1]
  /// How long to wait for bytes that must not arrive.
  private static let moment: Duration = .milliseconds(100)

  @Test func `a sound line carries bytes both ways, and the end of each`() throws {
    let wire = try Wire()
    let long = (0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
    // The sockets hold far less than this: written beside the reader.
    let header: [UInt8] = [0x30, 0x80, 0x89, 0x7A]
    wire.put([1, 2, 3], into: wire.client)
    #expect(wire.take(3, from: wire.server, within: .patience) == [1, 2, 3])
    wire.put(header, into: wire.server)
    var sent = 0
    var received: [UInt8] = []
    while sent < long.count {
      let part = Array(long[sent..<min(sent + 50_000, long.count)])
      wire.put(part, into: wire.server)
      sent += part.count
      // A packet is forwarded when it is complete.
    }
    received = try #require(wire.take(4 + long.count, from: wire.client, within: .patience))
    #expect(received == header + long)
    shutdown(wire.client, Int32(SHUT_WR))
    #expect(wire.take(1, from: wire.server, within: .patience) == [])
    wire.put(Self.publish, into: wire.server)
    #expect(wire.take(5, from: wire.client, within: .patience) == Self.publish)
  }

  @Test func `delay: everything is delayed equally, and in order`() throws {
    let wire = try Wire { $0.delay = .milliseconds(80) }
    let start = EventLoop.now()
    wire.put([1], into: wire.client)
    wire.put([2], into: wire.client)
    #expect(wire.take(2, from: wire.server, within: .patience) == [1, 2])
    #expect(start.duration(to: EventLoop.now()) >= .milliseconds(80))
    let back = EventLoop.now()
    wire.put(Self.publish, into: wire.server)
    #expect(wire.take(5, from: wire.client, within: .patience) == Self.publish)
    #expect(back.duration(to: EventLoop.now()) >= .milliseconds(80))
  }

  @Test func `cut: both sides are reset, and the next connection is accepted`() throws {
    let wire = try Wire()
    wire.proxy.cut()
    #expect(wire.take(1, from: wire.client, within: .patience) == [])
    #expect(wire.take(1, from: wire.server, within: .patience) == [])
    let again = try #require(LoopbackPort.connected(to: wire.proxy.port))
    #expect(wire.proxy.waitFor(connections: 2))
    close(again)
  }

  @Test(arguments: FaultProxy.Direction.allCases)
  func `half open: one direction is lost with its end, the other works`(
    lost: FaultProxy.Direction
  ) throws {
    let wire = try Wire()
    wire.proxy.set { $0.lost = [lost] }
    let (from, to) = lost == .toBroker ? (wire.client, wire.server) : (wire.server, wire.client)
    wire.put(Self.publish, into: from)
    #expect(wire.take(1, from: to, within: Self.moment) == nil)
    wire.put(Self.publish, into: to)
    #expect(wire.take(5, from: from, within: .patience) == Self.publish)
    shutdown(from, Int32(SHUT_WR))
    #expect(wire.take(1, from: to, within: Self.moment) == nil)
  }

  @Test func `dropped packets: as many of the type as wanted vanish on the way from the broker`()
    throws
  {
    let wire = try Wire { $0.lostPackets = [FaultProxy.publishAcknowledgement: 2] }
    let stream = Self.acknowledgement + Self.publish + Self.acknowledgement + Self.publish
    // Cut anywhere, packets are recognised.
    for byte in stream { wire.put([byte], into: wire.server) }
    #expect(
      wire.take(10, from: wire.client, within: .patience) == Self.publish + Self.publish
    )
    #expect(wire.proxy.waitFor(lostPackets: 2))
    wire.put(Self.acknowledgement, into: wire.client)
    #expect(wire.take(4, from: wire.server, within: .patience) == Self.acknowledgement)
    wire.put(Self.acknowledgement, into: wire.server)
    #expect(wire.take(4, from: wire.client, within: .patience) == Self.acknowledgement)
  }

  @Test func `lost acknowledgements: those of publishes to one topic, no others`() throws {
    let wire = try Wire { $0.lostAcknowledgements = ["b": 1] }
    func publish(_ topic: UInt8, _ number: UInt8) -> [UInt8] { [0x32, 5, 0, 1, topic, 0, number] }
    func acknowledge(_ number: UInt8) -> [UInt8] { [0x40, 2, 0, number] }
    let (a, b) = (UInt8(ascii: "a"), UInt8(ascii: "b"))
    wire.put(publish(a, 1) + publish(b, 2) + publish(b, 3), into: wire.client)
    #expect(wire.take(21, from: wire.server, within: .patience)?.count == 21)
    wire.put(acknowledge(1) + acknowledge(2) + acknowledge(3), into: wire.server)
    #expect(
      wire.take(8, from: wire.client, within: .patience) == acknowledge(1) + acknowledge(3)
    )
    #expect(wire.proxy.waitFor(lostPackets: 1))
  }

  @Test func `a dead connection is accepted and never answered`() throws {
    let listener = try LoopbackPort.listener()
    let proxy = try FaultProxy(to: listener.port)
    proxy.set { $0.lost = [.toBroker, .toClient] }
    let client = try #require(LoopbackPort.connected(to: proxy.port))
    #expect(!Wait.forInput(of: client, within: Self.moment))
    #expect(!Wait.forInput(of: listener.descriptor, within: .zero))
    close(client)
    close(listener.descriptor)
  }

  @Test func `a black hole neither accepts nor refuses a connection`() throws {
    let hole = try BlackHole()
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let client = socket(AF_INET, kind, 0)
    LoopbackPort.begin(client, to: hole.port)
    var request = pollfd(fd: client, events: Int16(POLLOUT), revents: 0)
    #expect(unsafe poll(&request, 1, 100) == 0)
    close(client)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations
import TestBroker
import Testing

/// The private broker and its port, with a real mosquitto.
@Suite(.blocking) struct PrivateBrokerTests {
  @Test func `a broker whose port is occupied starts on another one`() throws {
    let broker = try TestBroker()
    let occupied = broker.port
    let occupant = try LoopbackPort.listener(on: occupied)
    defer { close(occupant.descriptor) }

    try broker.start()

    #expect(broker.port != occupied)
    #expect(broker.log().contains("Error: Address already in use"))
    _ = try RecordingSubscriber(port: broker.port)
  }

  @Test func `a broker keeps its port between runs`() throws {
    let broker = try TestBroker()
    try broker.start()
    broker.stop()
    let occupant = try LoopbackPort.listener(on: broker.port)

    let error = #expect(throws: PrivateBrokerError.self) { try broker.start() }
    #expect(error?.description.hasPrefix("port \(occupant.port) is in use") == true)

    close(occupant.descriptor)
    try broker.start()
    #expect(broker.port == occupant.port)
    _ = try RecordingSubscriber(port: broker.port)
  }

  @Test func `while its broker is stopped, a port refuses connections and stays reserved`()
    throws
  {
    let broker = try TestBroker()
    #expect(!LoopbackPort.accepts(broker.port))
    // Most servers do not share a port that is bound.
    #expect(!Self.canBind(broker.port))
    try broker.start()
    #expect(LoopbackPort.accepts(broker.port))
    broker.stop()
    #expect(!LoopbackPort.accepts(broker.port))
    #expect(!Self.canBind(broker.port))
  }

  @Test func `a reservation falls back to a port of the kernel's choice`() throws {
    let occupant = try LoopbackPort.listener()
    defer { close(occupant.descriptor) }
    let reservation = try PortReservation(preferring: occupant.port)
    #expect(reservation.port != occupant.port && reservation.port > 0)
  }

  /// Whether a server that does not set `SO_REUSEADDR` could have the port.
  private static func canBind(_ port: Int) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    return unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(descriptor, $0, size) == 0
      }
    }
  }
}

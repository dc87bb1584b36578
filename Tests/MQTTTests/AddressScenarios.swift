// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import MQTT
import Operations
import TestBroker
import Testing

/// A broker's name with several addresses, of which one works.
@Suite(.blocking) struct AddressScenarios {
  /// A protocol and whether TLS is used.
  struct Way: Sendable, CustomTestStringConvertible {
    var version: MQTTConfiguration.ProtocolVersion
    var isEncrypted: Bool
    var testDescription: String { "\(version)\(isEncrypted ? " with TLS" : "")" }

    static let all = [
      Way(version: .v311, isEncrypted: false), Way(version: .v311, isEncrypted: true),
      Way(version: .v5, isEncrypted: false), Way(version: .v5, isEncrypted: true),
    ]
  }

  /// Whether the machine has an IPv6 loopback address.
  private static var hasIPv6: Bool {
    let kind = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = socket(AF_INET6, kind, 0)
    defer { close(descriptor) }
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    address.sin6_addr = in6addr_loopback
    return unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in6>.size)) == 0
      }
    }
  }

  /// A broker at one address, and a client that knows it as `localhost`.
  private struct Scene {
    let authority: TestAuthority
    let broker: TestBroker
    var configuration: MQTTConfiguration

    init(_ way: Way, at address: String = "127.0.0.1") throws {
      var options = TestBroker.Options()
      options.address = address
      authority = try TestAuthority()
      if way.isEncrypted { options.certificate = try authority.certificate(name: "localhost") }
      broker = try TestBroker(options: options)
      try broker.start()
      configuration = MQTTConfiguration.local(broker, version: way.version)
      let (host, port) = ("localhost", broker.port)
      configuration.endpoint =
        way.isEncrypted ? .tls(host: host, port: port) : .tcp(host: host, port: port)
      if way.isEncrypted { configuration.caFile = authority.file }
    }
  }

  private func expectWork(_ harness: Harness, _ scene: Scene) throws {
    try #require(harness.connect(), "\(harness.log.all)")
    harness.set("a", "1")
    #expect(harness.run { harness.isSettled })
    withExtendedLifetime(scene) {}
  }

  @Test(arguments: Way.all)
  func `the name localhost reaches a broker that listens with IPv4 only`(way: Way) throws {
    let scene = try Scene(way)
    try expectWork(Harness(scene.configuration), scene)
  }

  @Test(arguments: Way.all)
  func `an IPv6 address that refuses is followed by the IPv4 address, at once`(way: Way) throws {
    let scene = try Scene(way)
    let harness = try Harness(scene.configuration, addresses: ["::1", "127.0.0.1"])
    try expectWork(harness, scene)
    #expect(harness.client.statistics.attempts == 2)
    #expect(!harness.log.all.contains { $0.contains("No connection") })
    #expect(harness.log.count(of: "address=127.0.0.1") == 1)

    // From then on the address that works comes first.
    try scene.broker.restart(signal: SIGKILL)
    #expect(harness.run { harness.client.statistics.connections == 2 })
    #expect(harness.log.count(of: "address=127.0.0.1") == 2)
  }

  @Test(.enabled(if: hasIPv6, "the machine has no IPv6 loopback address"), arguments: Way.all)
  func `an IPv4 address that refuses is followed by the IPv6 address`(way: Way) throws {
    let scene = try Scene(way, at: "::1")
    try expectWork(Harness(scene.configuration, addresses: ["127.0.0.1", "::1"]), scene)
  }

  @Test(.enabled(if: hasIPv6, "the machine has no IPv6 loopback address"))
  func `a number in the URL may be an IPv6 address`() throws {
    var scene = try Scene(Way.all[0], at: "::1")
    scene.configuration.endpoint = .tcp(host: "::1", port: scene.broker.port)
    try expectWork(Harness(scene.configuration), scene)
  }

  /// A first address that swallows connections, or accepts them and never answers.
  @Test(arguments: Way.all, [true, false])
  func `an address that is silent does not keep the client from the next one`(
    way: Way,
    isBlackHole: Bool
  ) throws {
    var scene = try Scene(way, at: "127.0.0.2")
    let hole = isBlackHole ? try BlackHole(on: scene.broker.port) : nil
    let mute = isBlackHole ? nil : try LoopbackPort.listener(on: scene.broker.port)
    defer { if let mute { close(mute.descriptor) } }
    scene.configuration.connectDeadline = .seconds(1)
    let harness = try Harness(scene.configuration, addresses: ["127.0.0.1", "127.0.0.2"])
    try expectWork(harness, scene)
    // Each round has come to the second address, also one in which a busy machine was too slow.
    #expect(harness.client.statistics.attempts.isMultiple(of: 2))
    withExtendedLifetime(hole) {}
  }

  @Test func `the end of a round names the cause that says most`() throws {
    let peer = try ScriptedBroker(
      ScriptedBroker.Script { _ in [.send([0x20, 2, 0, 5]), .close] }
    )
    var configuration = MQTTConfiguration.local(port: peer.port, version: .v311)
    configuration.endpoint = .tcp(host: "localhost", port: peer.port)
    let harness = try Harness(configuration, addresses: ["127.0.0.2", "127.0.0.1", "127.0.0.3"])
    harness.client.start()
    #expect(harness.run { harness.waitingReason != nil })
    #expect(harness.waitingReason?.contains("not authorized") == true)
    #expect(harness.client.statistics.attempts == 3)
  }

  @Test func `a certificate is checked against the name, never against the number`() throws {
    var options = TestBroker.Options()
    let authority = try TestAuthority()
    options.certificate = try authority.certificate(name: "127.0.0.1")
    let broker = try TestBroker(options: options)
    try broker.start()
    var configuration = MQTTConfiguration.local(broker)
    configuration.caFile = authority.file
    configuration.endpoint = .tls(host: "localhost", port: broker.port)
    let harness = try Harness(configuration, addresses: ["127.0.0.1"])
    harness.client.start()
    #expect(harness.run { harness.waitingReason != nil })
    let other = "TLS: the broker's certificate is for another name than localhost"
    #expect(harness.lastReason == other)

    // A common name that is the number of the URL.
    configuration.endpoint = .tls(host: "127.0.0.1", port: broker.port)
    #expect(try Harness(configuration).connect())
    configuration.endpoint = .tls(host: "127.0.0.3", port: broker.port)
    let stranger = try Harness(configuration, addresses: ["127.0.0.1"])
    stranger.client.start()
    #expect(stranger.run { stranger.waitingReason != nil })
    #expect(stranger.lastReason?.contains("another name than 127.0.0.3") == true)
  }

  /// The first record of TLS that a client sends to a broker called `host`.
  private func greeting(host: String) throws -> String {
    let listener = try LoopbackPort.listener()
    defer { close(listener.descriptor) }
    var configuration = MQTTConfiguration.local(port: listener.port)
    configuration.endpoint = .tls(host: host, port: listener.port)
    configuration.connectDeadline = .patience * 10
    let harness = try Harness(configuration, addresses: ["127.0.0.1"])
    harness.client.start()
    try #require(Wait.forInput(of: listener.descriptor))
    let peer = accept(listener.descriptor, nil, nil)
    defer { close(peer) }
    var bytes = [UInt8](repeating: 0, count: 1 << 14)
    var count = 0
    var wait = Wait()
    // Its type, its version, the length of the rest in two bytes, and the rest.
    while count < 5 || count < 5 + Int(bytes[3]) << 8 + Int(bytes[4]) {
      try #require(wait.remaining(count) != nil)
      harness.run(for: .milliseconds(5))
      count = max(0, unsafe recv(peer, &bytes, bytes.count, Int32(MSG_DONTWAIT | MSG_PEEK)))
    }
    return String(decoding: bytes.prefix(count), as: Unicode.ASCII.self)
  }

  @Test func `TLS names the host of the URL to the broker, and no number`() throws {
    let named = try greeting(host: "broker.example")
    #expect(named.contains("broker.example"))
    #expect(!named.contains("127.0.0.1"))
    let numbered = try greeting(host: "127.0.0.1")
    #expect(!numbered.isEmpty)
    #expect(!numbered.contains("127.0.0.1"))
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import MQTT
import Operations
import TestBroker
import Testing

/// TLS against a real broker, with certificates made on the spot.
@Suite(.blocking) struct TLSScenarios {
  let authority: TestAuthority

  init() throws {
    authority = try TestAuthority()
  }

  private func broker(name: String) throws -> TestBroker {
    var options = TestBroker.Options()
    options.certificate = try authority.certificate(name: name)
    let broker = try TestBroker(options: options)
    try broker.start()
    return broker
  }

  private func configuration(
    _ broker: TestBroker,
    host: String = "localhost"
  ) -> MQTTConfiguration {
    var configuration = MQTTConfiguration.local(broker)
    configuration.endpoint = .tls(host: host, port: broker.port)
    configuration.caFile = authority.file
    return configuration
  }

  @Test(arguments: [MQTTConfiguration.ProtocolVersion.v311, .v5])
  func `publishes over TLS, and reconnects after the broker was killed`(
    version: MQTTConfiguration.ProtocolVersion
  ) throws {
    let broker = try broker(name: "localhost")
    var configuration = configuration(broker)
    configuration.version = version
    let harness = try Harness(configuration)
    harness.client.subscribe([.init(filter: "key/#", wantsRetained: false)])
    #expect(harness.connect())
    for number in 0..<100 { harness.set("key/\(number)", "x") }
    #expect(harness.run { harness.isSettled && harness.received.count == 100 })
    for _ in 0..<2 {
      try broker.restart(signal: SIGKILL)
      #expect(harness.run { !harness.isConnected })
      harness.set("key/1", "again")
      #expect(harness.run { harness.isSettled })
    }
    #expect(harness.client.statistics.connections == 3)
  }

  @Test func `a certificate for another name is refused`() throws {
    let broker = try broker(name: "elsewhere.example")
    let harness = try Harness(configuration(broker))
    harness.client.start()
    #expect(harness.run { harness.client.statistics.attempts >= 2 })
    #expect(harness.client.statistics.connections == 0)
    #expect(
      harness.lastReason == "TLS: the broker's certificate is for another name than localhost"
    )
  }

  @Test func `a certificate of an unknown authority is refused`() throws {
    let broker = try broker(name: "localhost")
    var configuration = configuration(broker)
    let stranger = try TestAuthority()
    configuration.caFile = stranger.file
    let harness = try Harness(configuration)
    harness.client.start()
    #expect(harness.run { harness.client.statistics.attempts >= 2 })
    #expect(harness.client.statistics.connections == 0)
    let issued = "TLS: the broker's certificate was issued by an authority that is not in"
    #expect(harness.lastReason == "\(issued) \(stranger.file)")
    // Nor does the system's store know it.
    configuration.caFile = nil
    let other = try Harness(configuration)
    other.client.start()
    #expect(other.run { other.waitingReason != nil })
    #expect(other.client.statistics.connections == 0)
    #expect(other.lastReason == "\(issued) the system's store")
  }

  @Test func `an expired certificate is refused until the broker has a new one`() throws {
    var options = TestBroker.Options()
    options.certificate = try authority.certificate(name: "localhost", days: 0)
    let broker = try TestBroker(options: options)
    try broker.start()
    let harness = try Harness(configuration(broker))
    harness.client.start()
    #expect(harness.run { harness.client.statistics.attempts >= 2 })
    #expect(harness.lastReason == "TLS: the broker's certificate has expired")

    // Renewed in its place, as a certificate is.
    _ = try authority.certificate(name: "localhost")
    try broker.restart(signal: SIGTERM)
    #expect(harness.run { harness.isConnected })
  }

  @Test func `an authority file that is mended on the disk counts without a restart`() throws {
    let broker = try broker(name: "localhost")
    let folder = try TemporaryFolder.make("settle-tls")
    defer { TemporaryFolder.remove(folder) }
    let stranger = try TestAuthority()
    try TextFile.write(TextFile.read(stranger.file) ?? "", to: folder + "/ca.pem")
    var configuration = configuration(broker)
    configuration.caFile = folder + "/ca.pem"
    let harness = try Harness(configuration)
    harness.client.start()
    #expect(harness.run { harness.client.statistics.attempts >= 2 })
    #expect(harness.client.statistics.connections == 0)

    try TextFile.write(TextFile.read(authority.file) ?? "", to: folder + "/ca.pem")
    #expect(harness.run { harness.isConnected })
  }

  @Test func `a broker that requires a client certificate accepts only one that it knows`() throws {
    var options = TestBroker.Options()
    options.certificate = try authority.certificate(name: "localhost")
    options.lines = ["cafile \(authority.file)", "require_certificate true"]
    let broker = try TestBroker(options: options)
    try broker.start()
    let bare = try Harness(configuration(broker))
    bare.client.start()
    #expect(bare.run { bare.log.all.contains { $0.contains("wants a client certificate") } })
    #expect(bare.client.statistics.connections == 0)

    let stranger = try TestAuthority()
    var unknown = configuration(broker)
    (unknown.certificateFile, unknown.keyFile) = try stranger.certificate(name: "gateway")
    let refused = try Harness(unknown)
    refused.client.start()
    #expect(refused.run { refused.log.all.contains { $0.contains("client certificate") } })
    #expect(refused.client.statistics.connections == 0)

    var known = configuration(broker)
    (known.certificateFile, known.keyFile) = try authority.certificate(name: "gateway")
    #expect(try Harness(known).connect())
  }

  @Test func `a CA file that is missing is named`() throws {
    var configuration = MQTTConfiguration.local(port: 1)
    configuration.endpoint = .tls(host: "localhost", port: 1)
    configuration.caFile = "/nonexistent/ca.pem"
    let harness = try Harness(configuration)
    harness.client.start()
    #expect(harness.run { harness.waitingReason != nil })
    #expect(harness.waitingReason == "CA file /nonexistent/ca.pem: No such file or directory")
  }

  @Test func `plain text at a TLS port fails without spinning`() throws {
    let broker = try broker(name: "localhost")
    let harness = try Harness(.local(broker))
    harness.client.start()
    #expect(harness.run { harness.client.statistics.attempts >= 3 })
    #expect(harness.client.statistics.connections == 0)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Engine
import Operations
import TestBroker
import Testing

/// What is wrong with an engine is said in words that lead to its cause.
@Suite(.blocking) struct EngineRefusalTests {
  @Test func `a cluster with other partitions refuses, and names both numbers`() throws {
    let (server, harness) = (try NATSServer(), try EngineHarness())
    let first = try harness.ready(EngineHarness.settings(server, partitions: 8))
    let second = try harness.engine(EngineHarness.settings(server, partitions: 16))
    var refusal: EngineRefusal?
    second.onRefusal = { refusal = $0 }
    second.start()
    try #require(harness.run { refusal != nil })
    #expect(
      refusal?.description
        == "cluster: the cluster test has 8 partitions, the settings say 16: correct"
        + " cluster.partitions"
    )
    #expect(!second.isReady)
    first.close()
    second.close()
  }

  @Test func `wrong credentials, a server without JetStream and too few servers are told apart`()
    throws
  {
    let harness = try EngineHarness()
    var options = NATSServer.Options()
    options.user = ("settle", "right")
    let guarded = try NATSServer(options)
    var settings = EngineHarness.settings(guarded)
    settings.connection.username = "settle"
    settings.connection.password = "wrong"
    let rejected = try harness.engine(settings)
    rejected.start()
    #expect(harness.run { rejected.problem?.contains("refuse the credentials") ?? false })
    #expect(rejected.problem?.hasSuffix("cluster.username and cluster.password_file") ?? false)
    rejected.close()
    settings.connection.password = "right"
    try harness.ready(settings).close()

    options = NATSServer.Options()
    options.hasJetStream = false
    let plain = try NATSServer(options)
    let without = try harness.engine(EngineHarness.settings(plain))
    without.start()
    #expect(harness.run { without.problem?.contains("has no JetStream") ?? false })
    without.close()

    let one = try NATSServer()
    let alone = try harness.engine(EngineHarness.settings(one, replicas: 3))
    alone.start()
    #expect(harness.run { alone.problem?.contains("fewer servers than cluster.replicas") ?? false })
    alone.close()
  }

  @Test func `what is wrong with TLS is said with the settings to look at`() throws {
    let (authority, stranger) = (try TestAuthority(), try TestAuthority())
    var options = NATSServer.Options()
    options.certificate = try authority.certificate(name: "localhost")
    let (server, plain, harness) = (try NATSServer(options), try NATSServer(), try EngineHarness())
    let local = server.url.replacing("127.0.0.1", with: "localhost")
    func problem(_ url: String, ca: String? = nil) throws -> String {
      var settings = EngineHarness.settings(server)
      settings.connection.servers = [url]
      settings.connection.ca = ca
      let engine = try harness.engine(settings)
      engine.start()
      defer { engine.close() }
      // Before it listens, a server does not answer.
      try #require(harness.run { engine.problem?.contains("cluster.") ?? false })
      return engine.problem ?? ""
    }
    let encrypted = local.replacing("nats:", with: "tls:")
    #expect(try problem(local).hasSuffix("write tls:// instead of nats:// in cluster.nats"))
    let other = plain.url.replacing("nats:", with: "tls:")
    #expect(try problem(other).hasSuffix("write nats:// instead of tls:// in cluster.nats"))
    let missing = authority.file + ".none"
    #expect(
      try problem(encrypted, ca: missing)
        .hasSuffix("\(missing), the file of cluster.ca, cannot be read: No such file or directory")
    )
    let foreign = try problem(encrypted, ca: stranger.file)
    #expect(foreign.contains("from an authority in \(stranger.file)."))
    #expect(try problem(encrypted).contains("in the system's store; see cluster.ca."))
    // By its address it has another name than in the certificate.
    let address = server.url.replacing("nats:", with: "tls:")
    #expect(try problem(address, ca: authority.file).contains("for the names in cluster.nats"))

    var settings = EngineHarness.settings(server)
    settings.connection.servers = [encrypted]
    settings.connection.ca = authority.file
    try harness.ready(settings).close()
  }

  @Test func `servers that come later are found`() throws {
    let (server, harness) = (try NATSServer(), try EngineHarness())
    server.kill()
    let engine = try harness.engine(EngineHarness.settings(server))
    engine.start()
    try #require(harness.run { engine.problem?.contains("no connection to the engine") ?? false })
    try server.start()
    #expect(harness.run { engine.isReady })
    #expect(engine.problem == nil)
    engine.close()
  }

  /// In a process of its own, where libnats is not loaded yet.
  @Test func `a missing library is named with the package that has it`() async {
    await #expect(processExitsWith: .success) {
      var connection = NATSSettings(servers: ["nats://127.0.0.1:1"], name: "test")
      connection.library = "libnats-of-nobody.so.9"
      let settings = EngineSettings(cluster: "test", connection: connection)
      let loop = try EventLoop()
      do throws(EngineRefusal) {
        _ = try ClusterEngine(settings, member: "a", loop: loop, log: Logger { _ in })
        Issue.record("It was loaded.")
      } catch {
        #expect(error.description.contains("apt install libnats3.4"))
        #expect(error.description.contains("libnats-of-nobody.so.9"))
      }
    }
  }
}

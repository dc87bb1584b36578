// Settle
// SPDX-License-Identifier: Apache-2.0

import Engine
import Glibc
import LastOut
import Operations
import TestBroker
import Testing

/// Whether the servers write to their disks before they acknowledge.
@Suite(.blocking) struct ServerMonitorTests {
  /// Answers one request with a text.
  private func answering(_ text: String) throws -> String {
    let made = try LoopbackPort.listener()
    try WorkerThread {
      let client = accept(made.descriptor, nil, nil)
      var request = [UInt8](repeating: 0, count: 1024)
      _ = unsafe recv(client, &request, request.count, 0)
      let bytes = Array(text.utf8)
      _ = unsafe send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL))
      close(client)
      close(made.descriptor)
    }.detach()
    return "http://127.0.0.1:\(made.port)"
  }

  private func server(_ settings: String) throws -> String {
    try answering(
      "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"
        + #"{"version":"2.15.1","jetstream":{"config":{\#(settings)}}}"#
    )
  }

  private func writes(of addresses: [String]) throws -> DiskWrites {
    let loop = try EventLoop()
    let monitor = try ServerMonitor(addresses, loop: loop)
    let timer = try loop.makeTimer { loop.stop() }
    var isDone = false
    monitor.onChange = {
      isDone = true
      loop.stop()
    }
    monitor.ask()
    timer.arm(at: EventLoop.now().advanced(by: .patience))
    loop.run()
    #expect(isDone)
    return monitor.writes
  }

  @Test func `all servers must write before they acknowledge`() throws {
    let always = #""sync_interval":120000000000,"sync_always":true"#
    #expect(try writes(of: [server(always), server(always)]) == .beforeAnswers)
    let usual = try server(#""sync_interval":120000000000"#)
    let found = try writes(of: [server(always), usual])
    let how = "it writes to its disk up to 120 s after it has acknowledged"
    #expect(found == .later(server: usual, how: how))
    let old = try answering("HTTP/1.1 200 OK\r\n\r\n" + #"{"version":"2.9.10","jetstream":{}}"#)
    guard case .later(old, let reason) = try writes(of: [old]) else {
      Issue.record("an old server is not noticed")
      return
    }
    #expect(reason == "nats-server 2.9.10 cannot write to its disk before it acknowledges")
  }

  @Test func `without an answer of NATS it is not known`() throws {
    let other = try answering("HTTP/1.0 200 OK\r\n\r\nwelcome")
    let reason = "\(other) is no monitoring address of NATS"
    #expect(try writes(of: [other]) == .unknown(reason))
    let refused = try answering("HTTP/1.0 401 Unauthorized\r\n\r\n{}")
    #expect(try writes(of: [refused]) == .unknown("\(refused) does not answer"))
    // A server that is known to be unsafe says more than one that does not answer.
    let usual = try server(#""sync_interval":10000000000"#)
    let found = try writes(of: ["http://127.0.0.1:1", usual])
    #expect(found != .unknown("http://127.0.0.1:1 does not answer"))
    let loop = try EventLoop()
    #expect(
      try ServerMonitor([], loop: loop).writes == .unknown("cluster.monitor is not set")
    )
  }

  @Test func `a real server is understood`() throws {
    var options = NATSServer.Options()
    options.isMonitored = true
    let server = try NATSServer(options)
    let harness = try EngineHarness()
    try harness.ready(EngineHarness.settings(server)).close()
    guard case .later(server.monitorURL, _) = try writes(of: [server.monitorURL]) else {
      Issue.record("\(try writes(of: [server.monitorURL]))")
      return
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// The line between gateway and broker fails, not the broker.
@Suite(.blocking) struct BrokenLineScenarios {
  private static let devices = DeviceText.levels(1, policy: "{delay: 20ms, max_wait: none}")

  private static func address(_ port: Int) -> [String: String] {
    ["SETTLE_MQTT_URL": "mqtt://127.0.0.1:\(port)"]
  }

  /// Connections neither taken nor refused, or taken and never answered.
  @Test(arguments: [true, false])
  func `a black hole is given up after five seconds, and holds up neither changes nor the end`(
    isTaken: Bool
  ) throws {
    let bench = try Bench(devices: Self.devices)
    let proxy = try FaultProxy(to: bench.broker.port)
    proxy.set { $0.lost = [.toBroker, .toClient] }
    let hole = try BlackHole()
    let start = EventLoop.now()
    try bench.launchGateway(environment: Self.address(isTaken ? proxy.port : hole.port))
    let gateway = try bench.running()
    let client = try bench.client()
    // Changes are accepted before the attempt is given up.
    let accepted = try client.ask(#"{"key":"dev0/level","set":1,"now":true}"#)
    #expect(accepted["phase"] == "accepted")
    #expect(gateway.lines(containing: "No connection").isEmpty)

    #expect(gateway.waitForLine(containing: "No connection") != nil)
    #expect(start.duration(to: EventLoop.now()) >= .milliseconds(4900))

    // Nothing pending: the attempt that is being made is not waited for.
    #expect(try client.ask(#"{"cancel":"*"}"#)["cancelled"] == 1)
    gateway.signal(SIGTERM)
    #expect(gateway.waitForExit() == 0)
    withExtendedLifetime(hole) {}
  }

  private func bench(through proxy: (TestBroker) throws -> FaultProxy) throws -> (
    Bench, FaultProxy
  ) {
    let bench = try Bench(devices: Self.devices)
    try bench.broker.start()
    let proxy = try proxy(bench.broker)
    try bench.startGateway(environment: Self.address(proxy.port))
    return (bench, proxy)
  }

  /// The broker has the value, and its acknowledgement is lost on the way.
  @Test func `a value whose acknowledgement is lost is sent once more`() throws {
    let (bench, proxy) = try bench { try FaultProxy(to: $0.port) }
    let witness = try bench.witness()
    let client = try bench.client()
    proxy.set { $0.lostAcknowledgements = ["cmd/dev0": 1] }
    client.send(#"{"key":"dev0/level","set":1,"id":"a","now":true,"wait":"sent"}"#)
    #expect(proxy.waitFor(lostPackets: 1))

    let sent = try client.next { $0["id"] == "a" && $0["phase"] == "sent" }

    #expect(sent["attempt"] == 2)
    #expect(witness.texts(on: "cmd/dev0", count: 2) == [#"{"v":1}"#, #"{"v":1}"#])
    // What comes next comes alone.
    _ = try client.ask(#"{"key":"dev0/level","set":2,"id":"b","now":true}"#)
    #expect(witness.waitFor("cmd/dev0", #"{"v":2}"#))
    #expect(witness.texts(on: "cmd/dev0") == [#"{"v":1}"#, #"{"v":1}"#, #"{"v":2}"#])
  }

  @Test func `after a lost acknowledgement the newer value is sent, never the older`()
    throws
  {
    let (bench, proxy) = try bench { try FaultProxy(to: $0.port) }
    let witness = try bench.witness()
    let client = try bench.client()
    var sent: [String] = []
    // On a busy machine the three seconds until the repetition may pass before the newer value
    // comes.
    for round in 0..<5 {
      let (older, newer) = (2 * round + 1, 2 * round + 2)
      proxy.set { $0.lostAcknowledgements = ["cmd/dev0": 1] }
      client.send(#"{"key":"dev0/level","set":\#(older),"id":"a","now":true,"wait":"sent"}"#)
      #expect(proxy.waitFor(lostPackets: round + 1))
      client.send(
        #"{"key":"dev0/level","set":\#(newer),"id":"b","now":true,"wait":"sent"}"# + "\n"
          + #"{"pending":"*","id":"p"}"#
      )
      var replies: [JSONValue] = []
      let last = try client.next {
        replies.append($0)
        return $0["id"] == "b" && $0["phase"] == "sent"
      }
      let ended = try #require(
        replies.first {
          $0["id"] == "a" && ($0["phase"] == "sent" || $0["phase"] == "superseded")
        }
      )
      #expect(last["attempt"] == 1)
      guard ended["phase"] == "superseded" else {
        sent += [older, older, newer].map { #"{"v":\#($0)}"# }
        continue
      }
      sent += [older, newer].map { #"{"v":\#($0)}"# }
      // It waited for the acknowledgement of the one before, and nobody knows when that comes.
      guard case .array(let rows) = replies.compactMap({ $0["pending"] }).first else {
        Issue.record("nothing is pending: \(replies)")
        return
      }
      #expect(rows.first?["waits"] == "in_flight")
      #expect(rows.first?["due_ms"] == .null)
      #expect(witness.texts(on: "cmd/dev0", count: sent.count) == sent)
      return
    }
    Issue.record("the newer value came too late five times")
  }
}

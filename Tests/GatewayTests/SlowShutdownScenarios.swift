// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import LastOut
import Operations
import TestBroker
import Testing

/// More is pending at the end than the timeout allows.
@Suite(.blocking) struct SlowShutdownScenarios {
  private static let keys = 10_000

  /// A gateway with as many routed topics pending, reached by a line with a delay.
  private func bench(delay: Duration, timeout: String) throws -> (Bench, FaultProxy) {
    let bench = try Bench(
      devices: DeviceText.lamp(),
      settings: """
        routes: [{from: "in/#", to: "out/#", policy: {delay: 1h, max_wait: none}}]
        shutdown: {timeout: \(timeout)}
        """,
      options: .roomy
    )
    try bench.broker.start()
    let proxy = try FaultProxy(to: bench.broker.port)
    try bench.startGateway(environment: ["SETTLE_MQTT_URL": "mqtt://127.0.0.1:\(proxy.port)"])
    let witness = try bench.witness()
    let flood = try RawPublisher(port: bench.broker.port)
    for number in 0..<Self.keys { flood.publish("in/\(number)", "v\(number)") }
    // Messages of one sender come in order: after this one all of them are there.
    flood.publish("settle/desk-lamp/power/set", "ON")
    flood.flush()
    try #require(
      witness.waitFor { $0.contains { $0.topic == "settle/desk-lamp/power/event" } }
    )
    proxy.set { $0.delay = delay }
    return (bench, proxy)
  }

  private func counts(_ gateway: GatewayProcess) throws -> (sent: Int, unsent: Int) {
    let line = try #require(gateway.lines(containing: " sent").last)
    let numbers = line.split(separator: " ").map(String.init)
    let words = numbers.indices.dropFirst().filter { numbers[$0].hasPrefix("sent") }
    let sent = words.first.flatMap { Int(numbers[$0 - 1]) } ?? -1
    let place = numbers.firstIndex(of: "not")
    return (sent, place.flatMap { Int(numbers[$0 - 1]) } ?? 0)
  }

  @Test func `10,000 keys are sent before the end if the broker keeps up`() throws {
    let (bench, proxy) = try bench(delay: .zero, timeout: "1h")
    let gateway = try bench.running()

    gateway.signal(SIGTERM)

    #expect(gateway.waitForExit() == 0)
    #expect(try counts(gateway).sent == Self.keys)
    let witness = try bench.witness()
    #expect(
      witness.waitFor { $0.count { $0.topic.hasPrefix("out/") } == Self.keys },
      "\(witness.messages.count)"
    )
    withExtendedLifetime(proxy) {}
  }

  @Test
  func `over a slow connection as many as possible are sent in time, and the others are counted`()
    throws
  {
    let (bench, proxy) = try bench(delay: .milliseconds(20), timeout: "3s")
    let gateway = try bench.running()

    gateway.signal(SIGTERM)

    #expect(gateway.waitForExit() == 1)
    let (sent, unsent) = try counts(gateway)
    #expect(sent > 0)
    // A window of 20 messages and 40 ms for each round trip: three seconds are enough for 1,500.
    #expect(sent < 5000)
    #expect(sent + unsent == Self.keys)
    withExtendedLifetime(proxy) {}
  }
}

extension TestBroker.Options {
  /// Keeps more for a slow subscriber than mosquitto does of itself, which drops the newest.
  static var roomy: Self {
    var options = Self()
    options.lines = ["max_queued_messages 100000", "max_inflight_messages 1000"]
    return options
  }
}

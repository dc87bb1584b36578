// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import Synchronization
import TestBroker
import Testing

/// More than the gateway can handle at once: from the broker, and from its own queue.
@Suite(.blocking) struct FloodScenarios {
  /// Set once, seen by another thread.
  private final class Flag: Sendable {
    private let state = Atomic(false)

    var isSet: Bool { state.load(ordering: .acquiring) }

    func set() { state.store(true, ordering: .releasing) }
  }

  private static let quick = "{delay: 500ms, max_wait: none}"

  /// What the broker has sent and the gateway has not read, by its own account.
  private func waitingBytes(_ text: String) throws -> Double {
    let family = try #require(PrometheusText.parse(text)["settle_broker_waiting_bytes"])
    return try #require(family.samples[#"settle_broker_waiting_bytes{broker="mqtt"}"#])
  }

  @Test func `a gateway that fell behind reports it, catches up, and loses no last value`() throws {
    let keys = 100
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.levels(keys, policy: Self.quick),
      options: .roomy
    )
    let witness = try RecordingSubscriber(port: bench.broker.port, filters: ["cmd/#"])
    let gateway = try bench.running()
    let flood = try RawPublisher(port: bench.broker.port)
    #expect(try waitingBytes(curl("/metrics").text) == 0)
    let before = gateway.residentBytes()

    // Everything comes while the gateway stands still: what it will find waiting.
    gateway.signal(SIGSTOP)
    for round in 1...100 {
      for key in 0..<keys { flood.publish("settle/dev\(key)/level/set", "\(round * 1000 + key)") }
    }
    flood.flush()
    // The broker delivers in order: when this arrives, the flood is in flight.
    let proof = try RecordingSubscriber(port: bench.broker.port, filters: ["proof"])
    #expect(bench.repeating(proof, "proof", "1") { proof.waitFor("proof", "1", within: $0) })
    // Its question too is there before the gateway goes on.
    let early = try bench.rawHTTP()
    early.send("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r")
    gateway.signal(SIGCONT)

    let figure = #"settle_broker_waiting_bytes{broker="mqtt"} "#
    var text: Substring?
    while text == nil, let line = early.nextLine() {
      if line.hasPrefix(figure) { text = line.dropFirst(figure.count) }
    }
    var lag = try #require(text.flatMap { Double($0) })
    // A gateway that is faster than its broker finds the rest of the flood a moment later.
    while lag == 0, witness.messages.count < keys { lag = try waitingBytes(curl("/metrics").text) }
    try #require(lag > 0)
    for key in 0..<keys {
      try #require(witness.waitFor("cmd/dev\(key)", #"{"v":\#(100_000 + key)}"#))
    }
    // An acknowledgement of its last event may be in flight.
    var wait = Wait()
    while lag > 0, wait.remaining() != nil {
      usleep(10_000)
      lag = try waitingBytes(curl("/metrics").text)
    }
    #expect(lag == 0)
    for key in 0..<keys {
      #expect(witness.texts(on: "cmd/dev\(key)").last == #"{"v":\#(100_000 + key)}"#)
    }
    #expect(witness.messages.count < 10 * keys)
    #expect(gateway.residentBytes() - before < 8 << 20)
  }

  @Test func `a key that never rests does not hold up the others`() throws {
    let bench = try Bench.running(
      devices: DeviceText.levels(2, policy: "{delay: 20ms, max_wait: 100ms}"),
      options: .roomy
    )
    let witness = try RecordingSubscriber(port: bench.broker.port, filters: ["cmd/dev1"])
    let port = bench.broker.port
    let isOver = Flag()
    let thread = try WorkerThread {
      guard let flood = try? RawPublisher(port: port),
        let commands = try? RecordingSubscriber(port: port, filters: ["cmd/dev0"])
      else { return }
      var number = 0
      while !isOver.isSet {
        for _ in 0..<40 {
          number += 1
          flood.publish("settle/dev0/level/set", "\(number % 1_000_000)")
        }
        flood.flush()
        usleep(1000)
        // Each longest wait, of at most 4,000 changes, ends with a command. A flood that is never
        // held back would measure how much the broker keeps for a slower gateway.
        while !isOver.isSet, number > 8000 * (commands.messages.count + 1) { usleep(1000) }
      }
    }
    defer {
      isOver.set()
      thread.join()
    }

    let client = try bench.client()
    for number in 1...20 {
      if number % 2 == 0 {
        try bench.witness().publish("settle/dev1/level/set", "\(number)")
      } else {
        client.send(#"{"key":"dev1/level","set":\#(number)}"#)
      }
      #expect(witness.waitFor("cmd/dev1", #"{"v":\#(number)}"#))
    }
  }

  @Test func `very many keys that settle at one instant do not hold up the next one`() throws {
    let keys = 6000
    let bench = try Bench.running(
      devices: DeviceText.levels(keys + 1, policy: "{delay: 1h, max_wait: none}")
    )
    let commands = try RecordingSubscriber(port: bench.broker.port, filters: ["cmd/#"])
    let events = try RecordingSubscriber(port: bench.broker.port, filters: ["settle/+/level/event"])
    let client = try bench.client()
    for number in 0..<keys {
      client.send(#"{"key":"dev\#(number)/level","set":\#(number)}"#)
      // Replies that nobody reads would stop the gateway's reading.
      if number % 100 == 99 { for _ in 0..<100 { _ = try client.next() } }
    }

    // The broker takes nothing until the second is accepted, which so finds all of them on their way.
    bench.broker.pause()
    client.send(
      """
      {"key":"*","flush":true}
      {"key":"dev\(keys)/level","set":7,"now":true}
      """
    )
    _ = try client.next { $0["key"] == .string("dev\(keys)/level") }
    bench.broker.resume()

    #expect(commands.waitFor { $0.count > keys })
    let place = try #require(commands.messages.firstIndex { $0.topic == "cmd/dev\(keys)" })
    // Place 20 on a quiet machine, and up to 145 beside 30 busy loops.
    #expect(place < keys / 10)
    // And what became of each of them is told.
    #expect(
      events.waitFor {
        $0.count { $0.text.contains(#""phase":"sent""#) } > keys
      },
      "\(events.messages.count)"
    )
    #expect(try bench.running().lines(containing: "dropped").isEmpty)
  }
}

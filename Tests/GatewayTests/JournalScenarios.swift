// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// With a journal, accepted values survive, once and in order.
@Suite(.blocking) struct JournalScenarios {
  private static let patient = "{delay: 60s, max_wait: none}"
  private static let quick = "{delay: 20ms}"

  @Test func `a value accepted and not sent is sent once after a crash, marked as replayed`() throws
  {
    let bench = try Bench.journalling(DeviceText.levels(2, policy: Self.patient))
    let witness = try bench.witness()
    let reply = try bench.client().ask(#"{"key":"dev0/level","set":7,"id":"mine"}"#)
    #expect(reply["phase"] == "accepted")

    try bench.crash()
    #expect(witness.texts(on: "cmd/dev0") == [])
    try bench.startGateway()

    #expect(witness.texts(on: "cmd/dev0", count: 1) == [#"{"v":7}"#])
    let message = try #require(witness.messages.first { $0.topic == "cmd/dev0" })
    #expect(message.userProperties["replayed"] == "1")
    #expect(!message.retained)
    #expect((1...60).contains(message.expirySeconds ?? 0))
    let sent = try bench.event(of: "dev0/level", "sent")
    #expect(sent["id"] == "mine")
    #expect(sent["source"] == "socket")
    // What is accepted now is no replay.
    _ = try bench.client().ask(#"{"key":"dev1/level","set":1,"now":true}"#)
    #expect(witness.waitFor("cmd/dev1", #"{"v":1}"#))
    #expect(witness.messages.first { $0.topic == "cmd/dev1" }?.userProperties["replayed"] == nil)
  }

  @Test func `an id that the gateway gave stays the same over a crash`() throws {
    let bench = try Bench.journalling(DeviceText.levels(1, policy: Self.patient))
    let reply = try bench.client().ask(#"{"key":"dev0/level","set":7}"#)

    try bench.crash()
    try bench.startGateway()

    #expect(try bench.event(of: "dev0/level", "sent")["id"] == reply["id"])
  }

  @Test func `a change by MQTT survives too, and its requester gets the final event`() throws {
    let bench = try Bench.journalling(DeviceText.levels(2, policy: Self.patient))
    let witness = try bench.witness()
    witness.publish(
      "settle/dev0/level/set",
      Array("9".utf8),
      responseTopic: "settle/reply/here",
      correlationData: [0, 1, 254]
    )
    // On the disk no later than what came after it.
    _ = try bench.client().ask(#"{"key":"dev1/level","set":1}"#)

    try bench.crash()
    try bench.startGateway()

    #expect(witness.waitFor("cmd/dev0", #"{"v":9}"#))
    #expect(witness.waitFor { $0.contains { $0.topic == "settle/reply/here" } })
    let answer = try #require(witness.messages.first { $0.topic == "settle/reply/here" })
    #expect(answer.correlationData == [0, 1, 254])
    #expect(answer.text.contains(#""phase":"sent""#))
  }

  @Test func `clients that send faster than the disk writes are slowed down, not refused`() throws {
    let bench = try Bench.journalling(
      DeviceText.levels(2, policy: Self.patient),
      settings: "limits: {pending: 8000}",
      journal: "commit: 1s"
    )
    let gateway = try bench.running()
    let count = 10_000  // Together more than may wait for the disk, with and without later phases.
    let clients = try [bench.client(), ControlClient(bench.socketPath)]
    let sending = try zip(clients, ["", #","wait":"sent""#]).enumerated().map { number, pair in
      let lines = (0..<count).map {
        #"{"key":"dev\#(number)/level","set":\#($0)\#(pair.1)}"# + "\n"
      }
      return try pair.0.sendMeanwhile(bytes: Array(lines.joined().utf8))
    }
    defer {
      gateway.signal(SIGKILL)  // Or the senders could wait for ever.
      for sender in sending { sender.join() }
    }

    // In turn: who reads nothing for long is dropped.
    var accepted = [0, 0]
    var wait = Wait()
    while accepted != [count, count] {
      try #require(wait.remaining(accepted.reduce(0, +)) != nil)
      for (number, client) in clients.enumerated() where accepted[number] < count {
        guard let reply = client.nextLine(within: .milliseconds(1)) else { continue }
        wait = Wait()
        try #require(!reply.contains(#""phase":"rejected""#))
        if reply.contains(#""phase":"accepted""#) { accepted[number] += 1 }
      }
    }
  }

  @Test func `accepted waits for the commit, and precedes all other events of its key`() throws {
    let bench = try Bench.journalling(
      DeviceText.levels(2, policy: Self.quick),
      journal: "commit: 600ms"
    )
    let client = try bench.client()
    _ = try client.ask(#"{"key":"dev0/level","set":1}"#)
    client.send(#"{"watch":"*","id":"w"}"#)
    client.send(#"{"key":"dev1/level","set":2,"wait":"sent","id":"x"}"#)

    #expect(try client.next { $0["id"] == "x" }["phase"] == "accepted")
    // The first commit was at once; the next comes 600 ms after it began, at the earliest, unless
    // the broker has acknowledged the value before.
    let phases = try (0..<2).map { _ in try client.next { $0["id"] == "x" }["phase"] }
    #expect(phases == ["sending", "sent"])
    let witness = try bench.witness()
    #expect(witness.waitFor("cmd/dev1", #"{"v":2}"#))
  }

  @Test func `accepted is not emitted before the commit of a pending value`() throws {
    let bench = try Bench.journalling(
      DeviceText.levels(2, policy: Self.patient),
      journal: "commit: 500ms"
    )
    let client = try bench.client()
    // A commit that began after this moment, and the distance between two.
    let start = EventLoop.now()
    _ = try client.ask(#"{"key":"dev0/level","set":1}"#)
    _ = try client.ask(#"{"key":"dev1/level","set":2}"#)

    #expect(start.duration(to: EventLoop.now()) >= .milliseconds(500))
  }

  @Test func `a client that only sends and closes its side still gets its reply`() throws {
    let bench = try Bench.journalling(
      DeviceText.levels(1, policy: Self.patient),
      journal: "commit: 300ms"
    )
    _ = try bench.client().ask(#"{"key":"dev0/level","set":1}"#)
    let client = try bench.client()
    client.send(#"{"key":"dev0/level","set":2}"#)
    client.endInput()

    #expect(try client.next()["phase"] == "accepted")
    #expect(client.isClosed())
  }

  @Test func `after a newer value was sent, a crash never sends an older one`() throws {
    let bench = try Bench.journalling(DeviceText.levels(1, policy: Self.patient))
    let witness = try bench.witness()
    for round in 0..<5 {
      let value = round * 10
      let client = try bench.client()
      _ = try client.ask(#"{"key":"dev0/level","set":\#(value + 1)}"#)
      client.send(#"{"key":"dev0/level","set":\#(value + 2),"now":true,"wait":"sent"}"#)
      #expect(witness.waitFor("cmd/dev0", #"{"v":\#(value + 2)}"#))
      try bench.crash()
      try bench.startGateway()
      _ = try bench.client().ask(#"{"key":"dev0/level","set":\#(value + 3),"now":true}"#)
      #expect(witness.waitFor("cmd/dev0", #"{"v":\#(value + 3)}"#))
    }
    let values = witness.texts(on: "cmd/dev0").compactMap { Int($0.dropFirst(5).dropLast()) }
    #expect(values == values.sorted())
    #expect(!values.contains { $0 % 10 == 1 })
    for value in Set(values) { #expect(values.count { $0 == value } <= 2) }
  }

  @Test func `a value that the broker has is sent at most once more, and then never`() throws {
    let bench = try Bench.journalling(DeviceText.levels(2, policy: Self.quick))
    let witness = try bench.witness()
    let client = try bench.client()
    client.send(#"{"key":"dev0/level","set":5,"wait":"sent","now":true}"#)
    _ = try client.next { $0["phase"] == "sent" }
    try bench.crash()
    try bench.startGateway()
    // A commit after the acknowledgement takes the row with it.
    for value in 1...3 { _ = try bench.client().ask(#"{"key":"dev1/level","set":\#(value)}"#) }
    let count = witness.texts(on: "cmd/dev0").count
    #expect((1...2).contains(count))

    try bench.stop()
    try bench.startGateway()
    client.passOverReplies()
    _ = try bench.client().ask(#"{"key":"dev1/level","set":8,"now":true}"#)

    #expect(witness.waitFor("cmd/dev1", #"{"v":8}"#))
    #expect(witness.texts(on: "cmd/dev0").count == count)
  }

  @Test func `a new change replaces the value that waits to be replayed`() throws {
    let bench = try Bench.journalling(DeviceText.levels(1, policy: Self.patient))
    let witness = try bench.witness()
    _ = try bench.client().ask(#"{"key":"dev0/level","set":1}"#)
    try bench.crash()
    bench.broker.stop(signal: SIGKILL)
    try bench.launchGateway()
    _ = try bench.client().ask(#"{"key":"dev0/level","set":2,"now":true}"#)

    try bench.broker.start()

    #expect(witness.waitFor("cmd/dev0", #"{"v":2}"#))
    #expect(witness.texts(on: "cmd/dev0") == [#"{"v":2}"#])
  }

  @Test func `a value whose time passed meanwhile ends as expired, under its own id`() throws {
    let bench = try Bench.journalling(DeviceText.levels(1, policy: Self.patient))
    let witness = try bench.witness()
    let line = #"{"key":"dev0/level","set":1,"id":"old","ttl":"50ms"}"#
    _ = try bench.client().ask(line)
    try bench.crash()
    Pace.every(.milliseconds(100), count: 2) { _ in }

    try bench.startGateway()

    let event = try bench.event(of: "dev0/level", "expired")
    #expect(event["id"] == "old")
    #expect(event["value"] == 1)
    #expect(event["reason"]?.string?.contains("did not run") == true)
    #expect(witness.texts(on: "cmd/dev0") == [])
  }

  @Test func `a cancelled value stays cancelled over a crash`() throws {
    let bench = try Bench.journalling(DeviceText.levels(2, policy: Self.patient))
    let witness = try bench.witness()
    let client = try bench.client()
    _ = try client.ask(#"{"key":"dev0/level","set":1}"#)
    #expect(try client.ask(#"{"key":"dev0/level","cancel":true}"#)["cancelled"] == 1)
    // On the disk no later than this.
    _ = try client.ask(#"{"key":"dev1/level","set":2}"#)

    try bench.crash()
    try bench.startGateway()

    #expect(witness.waitFor("cmd/dev1", #"{"v":2}"#))
    #expect(witness.texts(on: "cmd/dev0") == [])
  }

  @Test func `a value that an urgent one ended is not replayed`() throws {
    let bench = try Bench.journalling(
      """
      boiler:
        properties:
          target: {type: number, range: [0, 100], policy: \(Self.patient), \
      command: {topic: cmd/target, payload: $value}}
          mode: {type: choice, values: [off, heat], urgent: [off], ends: [target], \
      policy: \(Self.patient), command: {topic: cmd/mode, payload: $value}}

      """
    )
    let witness = try bench.witness()
    let client = try bench.client()
    _ = try client.ask(#"{"key":"boiler/target","set":60}"#)
    _ = try client.ask(#"{"key":"boiler/mode","set":"heat"}"#)
    _ = try client.ask(#"{"key":"boiler/mode","set":"off"}"#)
    #expect(witness.waitFor("cmd/mode", "off"))

    try bench.crash()
    try bench.startGateway()
    client.passOverReplies()
    _ = try bench.client().ask(#"{"key":"boiler/target","set":20,"now":true}"#)

    #expect(witness.waitFor("cmd/target", "20"))
    #expect(witness.texts(on: "cmd/target") == ["20"])
    #expect(Set(witness.texts(on: "cmd/mode")) == ["off"])
  }

  @Test func `values of removed keys, and values that are no longer valid, are dropped and logged`()
    throws
  {
    let bench = try Bench.journalling(DeviceText.levels(3, policy: Self.patient))
    let client = try bench.client()
    for number in 0..<3 { _ = try client.ask(#"{"key":"dev\#(number)/level","set":500}"#) }
    try bench.crash()
    // The third is gone, the second's range is smaller.
    let devices = DeviceText.levels(2, policy: Self.patient)
    let parts = devices.split(separator: "dev1:", maxSplits: 1)
    try #require(parts.count == 2)
    try TextFile.write(
      "\(parts[0])dev1:\(parts[1].replacing("1000000", with: "100"))",
      to: bench.folder + "/devices/devices.yaml"
    )

    try bench.startGateway()

    #expect(try bench.witness().waitFor("cmd/dev0", #"{"v":500}"#))
    let dropped = try bench.running().lines(containing: "Journalled value dropped")
    #expect(dropped.count == 2)
    #expect(dropped.contains { $0.contains("dev1/level") && $0.contains("outside") })
    #expect(dropped.contains { $0.contains("dev2/level") && $0.contains("no device") })
  }

  // MARK: - Many crashes

  /// `SETTLE_CRASH_ROUNDS` says how many, `SETTLE_CRASH_SEED` which.
  @Test func `killed at random moments under load it loses, reorders and repeats nothing`() throws {
    let variables = Variables.all()
    let count = variables["SETTLE_CRASH_ROUNDS"].flatMap { Int($0) } ?? 20
    let seed =
      variables["SETTLE_CRASH_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...9_999_999)
    print("Crash rounds: SETTLE_CRASH_ROUNDS=\(count) SETTLE_CRASH_SEED=\(seed)")
    let rounds = try CrashRounds(seed: seed)

    let problems = try rounds.live(count)

    print("Crash rounds: \(rounds.figures)")
    #expect(problems == [], "SETTLE_CRASH_SEED=\(seed)")
    #expect(rounds.figures.accepted > count)
    #expect(rounds.figures.rejected == 0)
    #expect(rounds.figures.replayed > 0)
  }

  // MARK: - Shutdown

  @Test func `without a broker it keeps and lists unsent values, exits with 0 and resumes`() throws
  {
    let bench = try Bench.journalling(
      DeviceText.levels(3, policy: Self.patient),
      settings: "shutdown: {timeout: 300ms}"
    )
    let witness = try bench.witness()
    let client = try bench.client()
    for number in 0..<3 { _ = try client.ask(#"{"key":"dev\#(number)/level","set":\#(number)}"#) }
    bench.broker.stop(signal: SIGKILL)

    let gateway = try bench.running()
    gateway.signal(SIGTERM)

    #expect(gateway.waitForExit() == 0)
    let keys = "dev0/level dev1/level dev2/level"
    #expect(
      gateway.lines(containing: "0 sent, 3 not sent: \(keys); 3 kept in the journal: \(keys)")
        .count == 1
    )
    try bench.broker.start()
    try bench.startGateway()
    for number in 0..<3 { #expect(witness.waitFor("cmd/dev\(number)", #"{"v":\#(number)}"#)) }
  }

  @Test func `values that were sent during shutdown are not sent again`() throws {
    let bench = try Bench.journalling(DeviceText.levels(50, policy: Self.patient))
    let witness = try bench.witness()
    let client = try bench.client()
    for number in 0..<50 { _ = try client.ask(#"{"key":"dev\#(number)/level","set":1}"#) }
    try bench.stop()

    try bench.startGateway()
    _ = try bench.client().ask(#"{"key":"dev0/level","set":2,"now":true}"#)

    #expect(witness.waitFor("cmd/dev0", #"{"v":2}"#))
    #expect(witness.messages.count { $0.topic.hasPrefix("cmd/") } == 51)
  }

  @Test func `a second signal reports the kept values at once, and fails`() throws {
    let bench = try Bench.journalling(
      DeviceText.levels(1, policy: Self.patient),
      settings: "shutdown: {timeout: 60s}"
    )
    _ = try bench.client().ask(#"{"key":"dev0/level","set":1}"#)
    bench.broker.stop(signal: SIGKILL)
    let gateway = try bench.running()
    gateway.signal(SIGTERM)
    #expect(gateway.waitForLine(containing: "Shutting down") != nil)
    gateway.signal(SIGTERM)

    #expect(gateway.waitForExit() == 1)
    #expect(gateway.lines(containing: "1 kept in the journal: dev0/level").count == 1)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// The control socket.
@Suite(.blocking) struct SocketScenarios {
  private let slow = "{delay: 60s, max_wait: none}"

  @Test func `several requests at once are answered in order, each with its id`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(3, policy: slow))
    let client = try bench.client()

    client.send(
      bytes: Array(
        """
        {"key":"dev0/level","set":1,"id":"a"}
        {"key":"dev1/level","value":2,"id":2}

        {"key":"dev1/level","set":3}
        {"get":"dev?/level","id":"g"}
        {"pending":"*","id":"p"}
        {"flush":"dev0/*","id":"f"}
        {"cancel":"dev1/level","id":"c"}
        {"pending":"nothing/*","id":"n"}

        """.utf8
      )
    )

    #expect(try client.next()["id"] == "a")
    let second = try client.next()
    #expect(second["id"] == 2)
    #expect(second["phase"] == "accepted")
    // The value that is replaced next was asked for by this client, too.
    let third = try client.next { $0["phase"] == "accepted" }
    #expect(third["id"]?.string?.count == 26)
    #expect(third["value"] == 3)
    let targets = try client.next { $0["id"] == "g" }
    guard case .array(let rows) = targets["get"] else {
      Issue.record("no rows: \(targets)")
      return
    }
    #expect(rows.map { $0["key"] } == ["dev0/level", "dev1/level", "dev2/level"])
    #expect(rows.map { $0["target"] } == [1, 3, .null])
    guard case .array(let pending) = try client.next()["pending"] else {
      Issue.record("no rows")
      return
    }
    #expect(pending.map { $0["key"] } == ["dev0/level", "dev1/level"])
    #expect(pending.map { $0["waits"] } == ["quiet", "quiet"])
    #expect(pending.map { $0["collapsed"] } == [0, 1])
    #expect(pending.allSatisfy { (59_000...60_000).contains($0["due_ms"]?.double ?? 0) })
    let flushed = try client.next { $0["id"] == "f" }
    #expect(flushed["flushed"] == 1)
    #expect(try client.next { $0["id"] == "c" }["cancelled"] == 1)
    #expect(try client.next { $0["id"] == "n" }["pending"] == [])
  }

  @Test func `with wait every phase is answered up to the end`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()
    let client = try bench.client()

    client.send(#"{"key":"desk-lamp/brightness","set":40,"id":"w","wait":"confirmed"}"#)
    #expect(try client.next()["phase"] == "accepted")
    #expect(try client.next()["phase"] == "sending")
    #expect(try client.next()["phase"] == "sent")
    witness.publish("zigbee2mqtt/desk_lamp", #"{"brightness":40}"#)
    let end = try client.next()
    #expect(end["phase"] == "confirmed")
    #expect(end["id"] == "w")

    client.send(#"{"key":"desk-lamp/brightness","set":50,"id":"x","wait":"confirmed"}"#)
    client.send(#"{"key":"desk-lamp/brightness","set":60,"id":"y","wait":"confirmed"}"#)
    let replaced = try client.next { $0["id"] == "x" && $0["phase"] != "accepted" }
    #expect(replaced["phase"] == "superseded")
    client.send(#"{"key":"desk-lamp/brightness","cancel":true,"id":"z"}"#)
    #expect(
      try client.next { $0["id"] == "y" && $0["phase"] != "accepted" }["phase"] == "cancelled"
    )
  }

  @Test func `now skips the quiet period`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(1, policy: slow))
    let witness = try bench.witness()
    let client = try bench.client()
    _ = try client.ask(#"{"key":"dev0/level","set":1}"#)

    _ = try client.ask(#"{"key":"dev0/level","set":2,"now":true}"#)

    #expect(witness.texts(on: "cmd/dev0", count: 1) == [#"{"v":2}"#])
  }

  @Test func `a client that closes its sending side still gets its replies`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()
    let client = try bench.client()

    client.send(#"{"key":"desk-lamp/brightness","set":40,"id":"h","wait":"confirmed"}"#)
    client.endInput()

    #expect(try client.next()["phase"] == "accepted")
    #expect(try client.next { $0["phase"] == "sent" }["id"] == "h")
    witness.publish("zigbee2mqtt/desk_lamp", #"{"brightness":40}"#)
    #expect(try client.next()["phase"] == "confirmed")
    #expect(client.isClosed())
  }

  @Test func `a client that waits with its input closed costs no time`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(1, policy: slow))
    let client = try bench.client()
    client.send(#"{"watch":"*","id":"w"}"#)
    client.endInput()
    let other = try bench.client()
    _ = try other.ask(#"{"get":"*"}"#)

    let before = try bench.running().processorTicks()
    #expect(client.nextLine(within: .milliseconds(500)) == nil)

    #expect(try bench.running().processorTicks() - before <= 5)
  }

  @Test func `requests that precede a disconnect take effect`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(600, policy: "{delay: 300ms}"))
    let witness = try bench.witness()

    // Each client has keys of its own: clients take turns, so the order between them is open.
    for keys in [0..<200, 200..<400, 400..<600] {
      let client = try bench.client()
      let lines = keys.map { #"{"key":"dev\#($0)/level","set":3}"# + "\n" }
      client.send(bytes: Array(lines.joined().utf8))
    }

    #expect(
      witness.waitFor { messages in
        let set = Set(messages.filter { $0.text == #"{"v":3}"# }.map(\.topic))
        return (0..<600).allSatisfy { set.contains("cmd/dev\($0)") }
      }
    )
  }

  @Test func `many requests at once are all answered`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(300, policy: slow))
    let client = try bench.client()

    // About 10 MB of answers to 12 KB of questions.
    let questions = (0..<400).map { #"{"get":"*","id":\#($0)}"# + "\n" }
    client.send(bytes: Array(questions.joined().utf8))
    client.endInput()

    for number in 0..<400 {
      let line = try #require(client.nextLine())
      #expect(line.hasSuffix(#""id":\#(number)}"#))
    }
    #expect(client.isClosed())
    #expect(try bench.running().residentBytes() < 100 << 20)
  }

  @Test func `a client with many requests does not block others`() throws {
    // Long enough for a machine that has much else to do: the change stays pending.
    let patient = "{delay: 3600s, max_wait: none}"
    let bench = try Bench.running(devices: DeviceText.levels(2000, policy: patient))
    let greedy = try bench.client()
    let modest = try bench.client()

    let questions = (0..<3000).map { #"{"pending":"*","id":\#($0)}"# + "\n" }
    greedy.send(bytes: Array(questions.joined().utf8))
    greedy.endInput()
    #expect(try modest.ask(#"{"key":"dev7/level","set":1}"#)["phase"] == "accepted")

    var rows: [Int] = []
    for number in 0..<3000 {
      let reply = try greedy.next()
      #expect(reply["id"] == .integer(Int64(number)))
      guard case .array(let pending) = reply["pending"] else { continue }
      rows.append(pending.count)
    }
    #expect(rows.count == 3000)
    #expect(rows.first == 0)
    #expect(rows.last == 1)
    #expect(rows == rows.sorted())
    #expect(greedy.isClosed())
  }

  @Test func `watchers see every phase of every change, also refusals`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(2, policy: "{delay: 20ms}"))
    let witness = try bench.witness()
    let watcher = try bench.client()
    watcher.send(#"{"watch":"dev0/*","id":"w"}"#)
    #expect(try watcher.ask(#"{"get":"dev0/level","id":"there"}"#)["id"] == "there")

    witness.publish("settle/dev1/level/set", "1")
    witness.publish("settle/dev0/level/set", "2")

    for phase in ["accepted", "sending", "sent"] {
      let line = try watcher.next()
      #expect(line["watch"] == "w")
      #expect(line["event"]?["phase"]?.string == phase)
      #expect(line["event"]?["key"] == "dev0/level")
      #expect(line["event"]?["value"] == 2)
    }
    let client = try bench.client()
    #expect(try client.ask(#"{"key":"dev0/level","set":"x"}"#)["phase"] == "rejected")
    #expect(try watcher.next()["event"]?["phase"] == "rejected")
    #expect(
      witness.waitFor {
        $0.contains { $0.topic == "settle/dev0/level/event" && $0.text.contains("rejected") }
      }
    )
  }

  @Test func `a watcher that does not read is dropped, the others go on`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(1, policy: "{delay: 60s}"))
    let keen = try bench.dropsWhoDoesNotRead(
      #"{"watch":"*"}"#,
      times: 16,
      keen: #"{"watch":"*","id":"k"}"#
    )
    #expect(try keen.next { $0["event"]?["value"] == 77777 }["watch"] == "k")
  }

  @Test func `the socket is for its owner and group, and a leftover is replaced`() throws {
    let bench = try Bench(devices: DeviceText.lamp())
    try bench.broker.start()
    try bench.startGateway()
    try bench.running().signal(SIGKILL)
    #expect(try bench.running().waitForExit() == -SIGKILL)
    #expect(!ControlClient.accepts(bench.socketPath))

    try bench.startGateway()

    #expect(ControlClient.accepts(bench.socketPath))
    var status = stat()
    #expect(unsafe lstat(bench.socketPath, &status) == 0)
    #expect(status.st_mode & 0o777 == 0o660)
  }

  @Test func `a second gateway on the same socket is refused with a clear line`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let second = try GatewayProcess(
      configuration: bench.folder + "/settle.yaml",
      socketPath: bench.socketPath
    )

    #expect(second.waitForExit() == 1)
    #expect(second.lines(containing: "another gateway is running at this socket").count == 1)
    #expect(second.log().contains(bench.socketPath))
    // The first one goes on.
    #expect(try bench.client().ask(#"{"get":"desk-lamp/power","id":1}"#)["id"] == 1)
  }

  @Test func `a file that is not a socket is not removed`() throws {
    let bench = try Bench(devices: DeviceText.lamp())
    try TextFile.write("mine", to: bench.socketPath)
    let gateway = try GatewayProcess(
      configuration: bench.folder + "/settle.yaml",
      socketPath: bench.socketPath
    )

    #expect(gateway.waitForExit() == 1)
    #expect(gateway.log().contains("the path is an existing file that is not a socket"))
    #expect(TextFile.read(bench.socketPath) == "mine")
  }

  @Test func `a gateway out of descriptors refuses clients and continues`() throws {
    let bench = try Bench(devices: DeviceText.levels(1, policy: "{delay: 20ms}"))
    try bench.broker.start()
    let witness = try bench.witness()
    try bench.launchGateway(descriptorLimit: 40)
    #expect(witness.waitFor("settle/status", "online"))

    var clients: [ControlClient] = []
    for _ in 0..<60 { clients.append(try bench.client()) }
    #expect(try bench.running().waitForLine(containing: "no file descriptors left") != nil)
    witness.publish("settle/dev0/level/set", "5")

    #expect(witness.waitFor("cmd/dev0", #"{"v":5}"#))
    let before = try bench.running().processorTicks()
    #expect(clients[0].nextLine(within: .milliseconds(300)) == nil)
    #expect(try bench.running().processorTicks() - before <= 5)
    clients = []
    // It hears of their end one by one.
    #expect(try bench.running().waitForNoClient())
    #expect(try bench.client().ask(#"{"get":"dev0/level","id":1}"#)["id"] == 1)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// Above the limits: bytes, changes, clients, and invalid names.
@Suite(.blocking) struct LimitScenarios {
  private let quick = DeviceText.levels(1, policy: "{delay: 20ms, max_wait: none}")

  /// A line that does not end.
  @Test func `64 MB on one line of the control socket are refused without being kept`() throws {
    let bench = try Bench.running(devices: quick)
    let witness = try bench.witness()
    let client = try bench.client()
    let gateway = try bench.running()
    let before = gateway.residentBytes()

    let part = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)
    for _ in 0..<64 { #expect(client.send(bytes: part)) }
    // Others are served in the middle of it.
    #expect(try bench.client().ask(#"{"key":"dev0/level","set":3}"#)["phase"] == "accepted")
    #expect(witness.waitFor("cmd/dev0", #"{"v":3}"#))
    client.send("")

    #expect(try client.next()["error"]?["code"] == "line_too_long")
    #expect(gateway.residentBytes() - before < 4 << 20)
    #expect(try client.ask(#"{"get":"dev0/level","id":1}"#)["id"] == 1)
  }

  /// Keys that no topic could be made of, and some that could be anything.
  @Test func `a key that is none is refused, and nothing is published anywhere`() throws {
    let bench = try Bench.running(devices: quick)
    let witness = try bench.witness()
    let client = try bench.client()
    let keys = [
      "$SYS/level", "/level", "dev0/", "dev0//level", "dev0/level/", "dev0/../level", "..", ".",
      "dev0/le+vel", "dev0/#", #"dev0\u0000/level"#, #"dev0/level\u0000"#, #"dev0/level\n"#,
      #"\u0001/level"#, "DEV0/level", "dev0/level/set", "settle/dev0/level", "status", "dev0",
      String(repeating: "x", count: 60_000) + "/level", String(repeating: "a/", count: 250) + "b",
      "dev0/" + String(repeating: "é", count: 5000),
    ]

    for key in keys {
      let reply = try client.ask(#"{"key":"\#(key)","set":1,"now":true}"#)
      let reason = reply["reason"]?.string ?? reply["error"]?["message"]?.string
      #expect(reply["phase"] == "rejected" || reply["error"] != nil, "\(key.prefix(80))")
      #expect(reason?.isEmpty == false, "\(key.prefix(80))")
      #expect((reason?.utf8.count ?? 0) < 1000, "\(key.prefix(80))")
    }
    // Half a surrogate pair is no text.
    #expect(try client.ask(#"{"key":"dev0/\ud800","set":1}"#)["error"]?["code"] == "syntax")

    #expect(try client.ask(#"{"key":"dev0/level","set":7}"#)["phase"] == "accepted")
    #expect(witness.waitFor("cmd/dev0", #"{"v":7}"#))
    let commands = witness.messages.filter { !$0.topic.hasPrefix("settle/") }
    #expect(commands.map(\.topic) == ["cmd/dev0"])
  }

  /// One key by the control socket, as fast as it goes.
  @Test func `50,000 changes of one key at once are sent as the last one and use no memory`() throws
  {
    let bench = try Bench.running(
      devices: DeviceText.levels(1, policy: "{delay: 1h, max_wait: none}")
    )
    let witness = try bench.witness()
    let client = try bench.client()
    let gateway = try bench.running()
    func change(_ values: ClosedRange<Int>) {
      for start in stride(from: values.lowerBound, to: values.upperBound, by: 500) {
        let lines = (start..<(start + 500)).map { #"{"key":"dev0/level","set":\#($0)}"# + "\n" }
        client.send(bytes: Array(lines.joined().utf8))
        for _ in lines { _ = client.nextLine() }
      }
    }
    change(1...2500)
    let before = gateway.residentBytes()

    change(2501...50_000)
    client.send(#"{"key":"dev0/level","flush":true}"#)

    #expect(witness.waitFor("cmd/dev0", #"{"v":50000}"#))
    #expect(gateway.residentBytes() - before < 4 << 20)
    #expect(witness.texts(on: "cmd/dev0").count == 1)
  }

  /// Half a line and then nothing, from more clients than there is room for.
  @Test func `clients that hang in the middle of a line do not block others`() throws {
    let bench = try Bench(devices: quick)
    try bench.broker.start()
    let witness = try bench.witness()
    try bench.launchGateway(descriptorLimit: 256)
    let gateway = try bench.running()
    #expect(witness.waitFor("settle/status", "online"))

    var hanging: [ControlClient] = []
    for _ in 0..<150 {
      let client = try bench.client()
      client.send(bytes: Array(#"{"key":"dev0/level","#.utf8))
      hanging.append(client)
    }
    let client = try bench.client()
    #expect(try client.ask(#"{"key":"dev0/level","set":1}"#)["phase"] == "accepted")
    #expect(witness.waitFor("cmd/dev0", #"{"v":1}"#))
    // Beyond the limit of descriptors, somebody is turned away; who is inside stays so.
    for _ in 0..<150 { hanging.append(try bench.client()) }
    #expect(gateway.waitForLine(containing: "Control connection refused") != nil)
    witness.publish("settle/dev0/level/set", "2")
    #expect(witness.waitFor("cmd/dev0", #"{"v":2}"#))
    #expect(try client.ask(#"{"get":"dev0/level","id":1}"#)["id"] == 1)
    // A client that resumes is served to the end.
    hanging[0].send(#""set":3,"id":"late"}"#)
    #expect(try hanging[0].next { $0["id"] == "late" }["phase"] == "accepted")

    // Once the gateway has noticed that they are gone, there is room again.
    hanging = []
    var wait = Wait()
    var reply: JSONValue?
    while reply == nil, wait.remaining() != nil {
      reply = try? bench.client().ask(#"{"get":"dev0/level","id":2}"#)
    }
    #expect(reply?["id"] == 2)
  }

  /// As many half lines as there may be clients, and more.
  @Test func `half lines leave room for a client that says something`() throws {
    let bench = try Bench.running(devices: quick)
    var hanging: [ControlClient] = []
    for round in 0..<4 {
      for _ in 0..<150 {
        let client = try bench.client()
        client.send(bytes: Array(#"{"key":"dev0/level","#.utf8))
        hanging.append(client)
      }
      let client = try bench.client()
      #expect(try client.ask(#"{"key":"dev0/level","set":\#(round)}"#)["phase"] == "accepted")
    }

    #expect(try bench.running().lines(containing: "Control connection refused").isEmpty)
    #expect(try hanging[0].next()["error"]?["code"] == "limit")
    #expect(hanging[0].isClosed())
  }

  /// The control socket full of clients that only wait.
  @Test func `idle clients make room, those who watch do not`() throws {
    let bench = try Bench.running(devices: quick)
    let watcher = try bench.client()
    watcher.send(#"{"watch":"*"}"#)
    let clients = try (0..<520).map { number in
      let client = try bench.client()
      #expect(
        try client.ask(#"{"get":"dev0/level","id":\#(number)}"#)["id"] == .integer(Int64(number))
      )
      return client
    }

    #expect(clients[0].isClosed())
    #expect(try clients[519].ask(#"{"key":"dev0/level","set":7}"#)["phase"] == "accepted")
    #expect(try watcher.next()["event"]?["value"] == 7)
  }

  /// Who watches and does not read, many times.
  @Test func `thirty watchers that do not read take a bounded amount of memory`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(1, policy: "{delay: 60s}"))
    let watchers = try (0..<30).map { _ in
      let client = try bench.client()
      client.send(bytes: Array(String(repeating: #"{"watch":"*"}"# + "\n", count: 16).utf8))
      return client
    }
    let client = try bench.client()
    _ = try client.ask(#"{"get":"dev0/level","id":0}"#)
    let gateway = try bench.running()
    let before = gateway.residentBytes()

    var most = before
    var value = 0
    func change() throws {
      #expect(try client.ask(#"{"key":"dev0/level","set":\#(value)}"#)["phase"] == "accepted")
      value += 1
      most = max(most, gateway.residentBytes())
    }
    // The first is dropped for the memory that all take, or, on a slow machine, for having read
    // nothing for a second; a second later the latter is true of all. They have 20 s to read why.
    while gateway.lines(containing: "Control client dropped").isEmpty, value < 20_000 {
      try change()
    }
    let firstDrop = EventLoop.now()
    while firstDrop.duration(to: EventLoop.now()) < .milliseconds(1_100) { try change() }
    try change()
    for watcher in watchers {
      var last = ""
      while let line = watcher.nextLine() { last = line }
      #expect(last.contains("events were dropped"))
    }
    while value < 400 { try change() }
    #expect(most - before < 100 << 20)
    // The log is not flooded.
    #expect(gateway.lines(containing: "Control client dropped").count < 3)
    // One that reads soon after it was dropped is told what it missed.
    let late = try bench.client()
    late.send(bytes: Array(String(repeating: #"{"watch":"*"}"# + "\n", count: 16).utf8))
    let start = EventLoop.now()
    for _ in 0..<100 { try change() }
    while start.duration(to: EventLoop.now()) < .seconds(3) { try change() }
    var last = ""
    while let line = late.nextLine() { last = line }
    #expect(last.contains("events were dropped"))
  }

  /// What is at the socket's path is not ours.
  @Test(arguments: ["s.sock", "s.sock.lock"])
  func `a link at the socket's place is neither followed nor removed`(name: String) throws {
    let bench = try Bench(devices: quick)
    let precious = bench.folder + "/precious"
    try TextFile.write("mine", to: precious)
    let link = bench.folder + "/" + name
    #expect(unsafe symlink(precious, link) == 0)
    let gateway = try GatewayProcess(
      configuration: bench.folder + "/settle.yaml",
      socketPath: bench.socketPath
    )

    #expect(gateway.waitForExit() == 1)
    #expect(gateway.log().contains(name))
    #expect(TextFile.read(precious) == "mine")
    var status = stat()
    #expect(unsafe lstat(link, &status) == 0)
    #expect(status.st_mode & S_IFMT == S_IFLNK)
  }
}

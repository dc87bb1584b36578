// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// Several gateways as one, with a real broker and a real server of NATS.
@Suite(.blocking) struct ClusterScenarios {
  static let lamps = """
    lamp-$n:
      for: [1..24]
      properties:
        level:
          type: number
          range: [0, 1000]
          policy: {delay: 200ms, max_wait: none}
          ttl: 10m
          command: {topic: "cmd/$n", payload: $value}
        slow:
          type: number
          range: [0, 1000]
          policy: {delay: 5s, max_wait: none}
          ttl: 10m
          command: {topic: "slow/$n", payload: $value}
        stop: {type: choice, values: [go, halt], urgent: [halt], command: {topic: "stop/$n", payload: $value}}

    """

  private static func number(_ device: String) -> String { String(device.dropFirst("lamp-".count)) }

  private func accepted(_ event: JSONValue) -> Bool { event["phase"]?.string == "accepted" }

  // MARK: - One face

  @Test func `each gateway answers for every device, and its owner alone drives it`() throws {
    let bench = try ClusterBench(devices: Self.lamps)
    let owners = try bench.owners()
    for place in 1...24 {
      let device = "lamp-\(place)"
      let event = try bench.client("a").ask(#"{"key":"\#(device)/level","set":\#(place)}"#)
      #expect(accepted(event), "\(event)")
      #expect(event["gateway"]?.string == owners[ClusterBench.partition(of: device)])
    }
    for place in 1...24 { #expect(bench.witness.waitFor("cmd/\(place)", "\(place)")) }
    // Every member shows what all of them drive.
    for member in ["a", "b", "c"] {
      let rows = try bench.rows(member) { rows in
        rows.count == 24 && rows.allSatisfy { $0["phase"]?.string == "sent" }
      }
      #expect(rows.map { $0["target"] } == (1...24).map { .integer(Int64($0)) })
    }
    for place in 1...24 { #expect(bench.witness.texts(on: "cmd/\(place)") == ["\(place)"]) }
    // Changes by MQTT reach the owner, too.
    for place in 1...24 {
      bench.witness.publish("settle/lamp-\(place)/level/set", "\(place + 100)")
    }
    for place in 1...24 { #expect(bench.witness.waitFor("cmd/\(place)", "\(place + 100)")) }
    for place in 1...24 { #expect(bench.witness.texts(on: "cmd/\(place)").count == 2) }
  }

  @Test func `pending, flush, cancel and watch are about the devices of all members`() throws {
    let bench = try ClusterBench(devices: Self.lamps.replacing("delay: 5s", with: "delay: 9m"))
    let watcher = try ControlClient(bench.socketPath("b"))
    watcher.send(#"{"watch":"*","id":"w"}"#)
    let client = try bench.client("a")
    // Watching is told to the others in the first batch that follows.
    _ = try watcher.ask(#"{"get":"lamp-1/level"}"#)
    for place in 1...24 {
      #expect(accepted(try client.ask(#"{"key":"lamp-\#(place)/slow","set":7}"#)))
    }
    let pending = try bench.client("c").ask(#"{"pending":"*/slow"}"#)
    guard case .array(let rows)? = pending["pending"] else {
      Issue.record("\(pending)")
      return
    }
    #expect(Set(rows.compactMap { $0["key"]?.string }).count == 24)
    #expect(try bench.client("b").ask(#"{"cancel":"lamp-1?/slow"}"#)["cancelled"] == 10)
    #expect(try bench.client("c").ask(#"{"flush":"*"}"#)["flushed"] == 14)
    for place in 1...9 { #expect(bench.witness.waitFor("slow/\(place)", "7")) }
    var sent: Set<String> = []
    while sent.count < 14 {
      let event = try watcher.next { $0["event"]?["phase"]?.string == "sent" }
      sent.insert(event["event"]?["key"]?.string ?? "")
    }
    #expect(bench.witness.texts(on: "slow/12").isEmpty)
  }

  @Test func `groups and scenes reach the devices of all members`() throws {
    let members = (1...12).map { "lamp-\($0)" }
    let bench = try ClusterBench(
      devices: Self.lamps + """
        groups:
          all: {members: [\(members.joined(separator: ", "))]}
        scenes:
          evening: {\(members.map { "\($0): {level: 33}" }.joined(separator: ", "))}

        """
    )
    let client = try bench.client("a")
    let event = try client.ask(#"{"key":"all/level","set":21,"wait":"sent"}"#)
    #expect(accepted(event) && event["key"]?.string == "all/level", "\(event)")
    #expect(try client.next { $0["phase"]?.string == "sent" }["key"]?.string == "all/level")
    for place in 1...12 { #expect(bench.witness.waitFor("cmd/\(place)", "21")) }
    bench.witness.publish("settle/all/level/set", "22")
    for place in 1...12 { #expect(bench.witness.waitFor("cmd/\(place)", "22")) }
    client.passOverReplies()
    client.send(#"{"scene":"evening"}"#)
    for _ in 1...12 { #expect(accepted(try client.next())) }
    for place in 1...12 { #expect(bench.witness.waitFor("cmd/\(place)", "33")) }
    bench.witness.publish("settle/scene/evening/set", "")
    for place in 1...12 {
      #expect(bench.witness.waitFor { $0.count { $0.topic == "cmd/\(place)" } == 4 })
    }
  }

  @Test func `flush, cancel and now of a group reach the devices of all members`() throws {
    let members = (1...12).map { "lamp-\($0)" }
    let bench = try ClusterBench(
      devices: Self.lamps.replacing("delay: 5s", with: "delay: 9m") + """
        groups:
          all: {members: [\(members.joined(separator: ", "))]}

        """
    )
    let client = try bench.client("a")
    func set(_ value: Int) throws {
      #expect(accepted(try client.ask(#"{"key":"all/slow","set":\#(value)}"#)))
    }
    func allGet(_ value: String) {
      for place in 1...12 { #expect(bench.witness.waitFor("slow/\(place)", value)) }
    }
    try set(1)
    #expect(try bench.client("b").ask(#"{"cancel":"all/slow"}"#)["cancelled"] == 1)
    #expect(try client.ask(#"{"pending":"*/slow"}"#)["pending"] == [])
    try set(2)
    #expect(try bench.client("c").ask(#"{"flush":"all/slow"}"#)["flushed"] == 1)
    allGet("2")
    try set(3)
    bench.witness.publish("settle/all/slow/flush", "")
    allGet("3")
    client.passOverReplies()
    client.send(#"{"key":"all","set":{"slow":4},"now":true}"#)
    allGet("4")
    for place in 1...12 { #expect(bench.witness.texts(on: "slow/\(place)") == ["2", "3", "4"]) }
  }

  @Test func `a group is accepted once every member is, or the answer names those that are not`()
    throws
  {
    let lamps = (1...12).map { "lamp-\($0)" }
    let bench = try ClusterBench(
      devices: Self.lamps + "groups: {all: {members: [\(lamps.joined(separator: ", "))]}}\n",
      members: ["a", "b"]
    )
    let owners = try bench.owners()
    let hanging = lamps.filter { owners[ClusterBench.partition(of: $0)] == "b" }
    let sleeper = try bench.process("b")
    sleeper.signal(SIGSTOP)
    defer { sleeper.signal(SIGCONT) }
    let answer = try bench.client("a").ask(#"{"key":"all/level","set":7}"#)
    #expect(accepted(answer))
    let reason = answer["reason"]?.string ?? ""
    #expect(hanging.prefix(3).allSatisfy { reason.contains("\($0): ") }, "\(answer)")
  }

  @Test func `what waits everywhere is shown, however long the values are`() throws {
    let bench = try ClusterBench(
      devices: Self.lamps + """
        note-$n:
          for: [1..40]
          properties:
            text: {type: text, policy: {delay: 9m}, command: {topic: "note/$n", payload: $value}}

        """,
      members: ["a", "b"]
    )
    let client = try bench.client("a")
    let text = String(repeating: "x", count: 60_000)
    for place in 1...40 {
      #expect(accepted(try client.ask(#"{"key":"note-\#(place)/text","set":"\#(text)"}"#)))
    }
    guard case .array(let rows)? = try client.ask(#"{"pending":"note-*"}"#)["pending"] else {
      Issue.record("no rows")
      return
    }
    #expect(rows.count == 40)
  }

  @Test func `an input changes a device once, on every member`() throws {
    let changes = (1...12).map { "k\($0): {key: lamp-\($0)/level, set: 44}" }.joined(
      separator: ", "
    )
    let bench = try ClusterBench(
      devices: Self.lamps,
      settings: "inputs: [{topic: knob, map: {\(changes)}}]"
    )
    for place in 1...12 { bench.witness.publish("knob", "k\(place)") }
    for place in 1...12 { #expect(bench.witness.waitFor("cmd/\(place)", "44")) }
    for place in 1...12 { #expect(bench.witness.texts(on: "cmd/\(place)") == ["44"]) }
  }

  /// The settings of the bench's server are the usual ones.
  @Test func `that a loss of power may lose accepted values is in status and log`() throws {
    let bench = try ClusterBench(devices: Self.lamps, members: ["a"])
    let client = try bench.client("a")
    var wait = Wait()
    var engine: JSONValue?
    while engine?["writes_first"] != false, wait.remaining() != nil {
      engine = try client.ask(#"{"status":true}"#)["status"]?["engine"]
    }
    #expect(engine?["writes_first"] == false, "\(bench.logs())")
    #expect(engine?["writes_reason"]?.string?.hasPrefix(bench.server.monitorURL) == true)
    #expect(try bench.process("a").log().contains("A loss of power may lose accepted values"))
  }

  @Test func `another cluster of the same name at the broker is in the status`() throws {
    let bench = try ClusterBench(devices: Self.lamps, members: ["a"])
    let other = try ClusterBench(devices: Self.lamps, members: ["z"], broker: bench.broker)
    let client = try bench.client("a")
    var wait = Wait()
    var isContested = false
    while !isContested, wait.remaining() != nil {
      isContested = try client.ask(#"{"status":true}"#)["status"]?["contested"] == true
    }
    #expect(isContested, "\(bench.logs())\n\(other.logs())")
  }

  @Test func `the status is online while any member lives, and each has its own`() throws {
    let bench = try ClusterBench(devices: Self.lamps, members: ["a", "b"])
    #expect(bench.witness.waitFor("settle/status", "online"))
    #expect(bench.witness.waitFor("settle/status/a", "online"))
    #expect(bench.witness.waitFor("settle/status/b", "online"))
    try bench.kill("b")
    #expect(bench.witness.waitFor("settle/status/b", "offline"))
    try bench.waitUntil("a", "not taken over") { $0.allSatisfy { $0 == "a" } }
    #expect(!bench.witness.texts(on: "settle/status").contains("offline"))
    try bench.process("a").signal(SIGTERM)
    #expect(try bench.process("a").waitForExit() == 0)
    #expect(bench.witness.waitFor("settle/status/a", "offline"))
    #expect(bench.witness.waitFor("settle/status", "offline"))
  }

  // MARK: - Faults

  @Test func `what is accepted arrives although its gateway is killed`() throws {
    let bench = try ClusterBench(devices: Self.lamps)
    let device = try bench.device(of: "b")
    let place = Self.number(device)
    #expect(accepted(try bench.client("a").ask(#"{"key":"\#(device)/slow","set":5}"#)))
    try bench.kill("b")
    // While nobody drives the device, a change waits for its next owner; so does one at the broker.
    bench.witness.publish("settle/\(device)/level/set", "6")
    let event = try bench.set("\(device)/slow", to: 8, by: "c")
    #expect(accepted(event) && event["gateway"]?.string != "b", "\(event)")
    #expect(bench.witness.waitFor("slow/\(place)", "8"))
    #expect(bench.witness.waitFor("cmd/\(place)", "6"))
    #expect(bench.witness.texts(on: "slow/\(place)") == ["8"])
    try bench.start("b")
    try bench.awaitOwners()
    let other = try bench.device(of: "c")
    #expect(accepted(try bench.client("b").ask(#"{"key":"\#(other)/slow","set":9}"#)))
    try bench.kill("c")
    #expect(bench.witness.waitFor("slow/\(Self.number(other))", "9"))
  }

  @Test func `an HTTP request is answered by a gateway that takes its device meanwhile`() throws {
    let bench = try ClusterBench(
      devices: Self.lamps,
      members: ["a", "b"],
      settings: "http: {listen: [\"127.0.0.1:0\"]}"
    )
    let curl = Curl(port: try bench.process("a").httpPort())
    let device = try bench.device(of: "b")
    let (path, place) = ("/v1/devices/\(device)", Self.number(device))
    try bench.kill("b")
    // Nobody drives the device until a has taken it, which may take longer than a request waits: 503.
    var (one, several) = (503, 503)
    while one == 503 { one = try curl.send("PUT", "\(path)/level", "7").status }
    // 504 if it still went to b; not again once b's end is known.
    if one == 504 {
      one = 503
      while one == 503 { one = try curl.send("PUT", "\(path)/level", "7").status }
    }
    while several == 503 {
      several = try curl.send("PUT", path, #"{"slow":8,"stop":"go"}"#).status
    }
    #expect(one == 202)
    #expect(several == 202)
    for (topic, payload) in [("cmd", "7"), ("slow", "8"), ("stop", "go")] {
      #expect(bench.witness.waitFor("\(topic)/\(place)", payload))
    }
  }

  @Test func `a value for a device that is away waits for it over a takeover`() throws {
    let devices = Self.lamps.replacing(
      "for: [1..24]",
      with: "for: [1..24]\n  availability: {topic: \"lamp/$n/status\"}"
    ).replacing("delay: 200ms", with: "delay: 0")
    let bench = try ClusterBench(devices: devices, members: ["a", "b"])
    let device = try bench.device(of: "b")
    let place = Self.number(device)
    bench.witness.publish("lamp/\(place)/status", "offline", retain: true)
    #expect(accepted(try bench.client("a").ask(#"{"key":"\#(device)/level","set":5}"#)))
    try bench.kill("b")
    try bench.waitUntil("a", "not taken over") { $0.allSatisfy { $0 == "a" } }
    // It settles again first.
    let client = try bench.client("a")
    while try !JSONWriter.text(client.ask(#"{"pending":"\#(device)/level"}"#)).contains(
      #""waits":"offline""#
    ) {}
    #expect(bench.witness.texts(on: "cmd/\(place)") == [])
    bench.witness.publish("lamp/\(place)/status", "online", retain: true)
    #expect(bench.witness.waitFor("cmd/\(place)", "5"))
  }

  @Test func `a gateway that gave a device away shows it online when its owner does`() throws {
    let devices = Self.lamps.replacing(
      "for: [1..24]",
      with: "for: [1..24]\n  availability: {topic: \"lamp/$n/status\"}"
    )
    let bench = try ClusterBench(devices: devices, members: ["a"])
    let client = try bench.client("a")
    for place in 1...24 { bench.witness.publish("lamp/\(place)/status", "offline", retain: true) }
    func awaitDevices(_ word: String, _ count: Int) throws {
      var wait = Wait()
      while wait.remaining() != nil {
        let reply = try client.ask(#"{"devices":"lamp-*"}"#)
        guard case .array(let rows)? = reply["devices"] else { continue }
        if rows.count(where: { $0["availability"]?.string == word }) == count { return }
      }
      Issue.record("not \(count) of 24 are \(word)")
    }
    try awaitDevices("offline", 24)
    try bench.configure("b")
    try bench.start("b")
    try bench.awaitOwners()
    let given = bench.devices(of: "b", try bench.owners())
    #expect(!given.isEmpty)
    for device in given {
      bench.witness.publish("lamp/\(Self.number(device))/status", "online", retain: true)
    }
    try awaitDevices("online", given.count)
  }

  @Test func `a gateway that slept while another took its devices sends nothing older`() throws {
    let bench = try ClusterBench(devices: Self.lamps, members: ["a", "b"])
    let device = try bench.device(of: "b")
    let place = Self.number(device)
    #expect(accepted(try bench.client("a").ask(#"{"key":"\#(device)/slow","set":1}"#)))
    let sleeper = try bench.process("b")
    sleeper.signal(SIGSTOP)
    try bench.waitUntil("a", "not taken over") { $0.allSatisfy { $0 == "a" } }
    #expect(accepted(try bench.client("a").ask(#"{"key":"\#(device)/slow","set":2}"#)))
    #expect(bench.witness.waitFor("slow/\(place)", "2"))
    sleeper.signal(SIGCONT)
    #expect(sleeper.waitForLine(containing: "joins again") != nil)
    try bench.awaitOwners()
    #expect(accepted(try bench.client("b").ask(#"{"key":"\#(device)/slow","set":3,"now":true}"#)))
    #expect(bench.witness.waitFor("slow/\(place)", "3"))
    #expect(bench.witness.texts(on: "slow/\(place)") == ["2", "3"])
  }

  @Test func `a member that ends in order gives its devices away, and loses nothing`() throws {
    let bench = try ClusterBench(devices: Self.lamps, members: ["a", "b"])
    let device = try bench.device(of: "b")
    #expect(accepted(try bench.client("a").ask(#"{"key":"\#(device)/slow","set":4}"#)))
    try bench.process("b").signal(SIGTERM)
    #expect(try bench.process("b").waitForExit() == 0)
    #expect(bench.witness.waitFor("slow/\(Self.number(device))", "4"))
    try bench.waitUntil("a", "not given away") { owners in
      try owners.allSatisfy { $0 == "a" } && bench.members()["b"] == "left"
    }
    #expect(accepted(try bench.client("a").ask(#"{"key":"\#(device)/level","set":4}"#)))
    #expect(bench.witness.waitFor("cmd/\(Self.number(device))", "4"))
  }

  @Test func `without its engine a member holds new values in memory, and urgent ones leave`()
    throws
  {
    let bench = try ClusterBench(devices: Self.lamps, members: ["a"])
    let client = try bench.client("a")
    #expect(accepted(try client.ask(#"{"key":"lamp-1/slow","set":1}"#)))
    bench.server.kill()
    let held = try client.ask(#"{"key":"lamp-2/level","set":2}"#)
    #expect(held["reason"]?.string?.hasPrefix("held in memory only") ?? false, "\(held)")
    #expect(bench.witness.waitFor("cmd/2", "2"))
    // The engine has an older value of this key, which another member would send.
    let refused = try client.ask(#"{"key":"lamp-1/slow","set":3}"#)
    #expect(refused["phase"]?.string == "rejected", "\(refused)")
    #expect(refused["reason"]?.string?.contains("engine") ?? false)
    #expect(accepted(try client.ask(#"{"key":"lamp-3/stop","set":"halt"}"#)))
    #expect(bench.witness.waitFor("stop/3", "halt"))
    try bench.server.start()
    #expect(try bench.process("a").waitForLine(containing: "recovered") != nil)
    let stored = try client.ask(#"{"key":"lamp-4/level","set":4}"#)
    #expect(accepted(stored) && stored["reason"] == .null, "\(stored)")
  }

  // MARK: - Bad set-ups

  @Test func `a second gateway of the same name and one with other partitions are refused`() throws
  {
    let bench = try ClusterBench(devices: Self.lamps, members: ["a"])
    try bench.configure("a", as: "twin")
    let twin = try bench.launch("twin")
    #expect(twin.waitForExit() == 78)
    #expect(twin.log().contains("another gateway is the member 'a' of the cluster 'test'"))
    try bench.configure("b", partitions: 16)
    let other = try bench.launch("b")
    #expect(other.waitForExit() == 78)
    #expect(other.log().contains("the cluster test has 8 partitions, the settings say 16"))
    #expect(accepted(try bench.client("a").ask(#"{"key":"lamp-1/level","set":1}"#)))
  }

  @Test func `a member with other device files drives nothing until they are the same`() throws {
    let bench = try ClusterBench(devices: Self.lamps, members: ["a", "b"])
    try bench.writeDevices(Self.lamps + "# other\n", in: "others")
    try bench.configure("c", devices: "others")
    try bench.start("c")
    let process = try bench.process("c")
    #expect(process.waitForLine(containing: "other device files than most") != nil)
    #expect(try bench.owners("c").allSatisfy { $0 == "a" || $0 == "b" })
    // It passes changes on all the same.
    #expect(accepted(try bench.client("c").ask(#"{"key":"lamp-1/level","set":1}"#)))
    try bench.writeDevices(Self.lamps, in: "others")
    process.signal(SIGHUP)
    try bench.awaitOwners()
  }
}

extension ClusterBench {
  /// Sets a value, again while the answer is that the outcome is unknown: what was sent to a
  /// gateway that was killed in the same moment.
  func set(_ key: String, to value: Int, by member: String) throws -> JSONValue {
    while true {
      let answer = try client(member).ask(#"{"key":"\#(key)","set":\#(value)}"#)
      if answer["error"]?["code"]?.string != "unanswered" { return answer }
    }
  }

  /// The rows of `get` at a member, once they are as expected.
  func rows(_ member: String, _ condition: ([JSONValue]) -> Bool) throws -> [JSONValue] {
    var wait = Wait()
    while true {
      let reply = try client(member).ask(#"{"get":"*/level"}"#)
      guard case .array(let rows)? = reply["get"] else {
        throw GatewayProcess.Failure(description: "\(reply)")
      }
      if condition(rows) { return rows }
      guard wait.remaining() != nil else {
        throw GatewayProcess.Failure(description: "\(rows); \(logs())")
      }
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// A journal that is damaged, not of Settle, or on a disk that cannot be written.
@Suite(.blocking) struct JournalFaultScenarios {
  private static let patient = "{delay: 60s, max_wait: none}"

  @Test func `a damaged journal is set aside, loudly, and a new one serves`() throws {
    let bench = try Bench(
      devices: DeviceText.levels(1, policy: Self.patient),
      settings: "journal: {path: journal.db}"
    )
    try bench.broker.start()
    try TextFile.write(String(repeating: "no database ", count: 100), to: bench.journalPath)
    unsafe chmod(bench.journalPath, 0o600)

    try bench.startGateway()

    let line = try bench.running().waitForLine(containing: "Journal damaged")
    #expect(line?.contains("journal.db.damaged-1") == true)
    #expect(TextFile.read(bench.journalPath + ".damaged-1")?.hasPrefix("no database") == true)
    _ = try bench.client().ask(#"{"key":"dev0/level","set":3}"#)
    try bench.crash()
    try bench.startGateway()
    #expect(try bench.witness().waitFor("cmd/dev0", #"{"v":3}"#))
  }

  @Test(
    arguments: [
      (60, 9, "has format 9, written by a newer version"),  // user_version
      (68, 1, "is a database of another program"),  // application_id
    ] as [(Int, UInt32, String)]
  )
  func `a journal that must not be touched ends the start with 78`(
    offset: Int,
    number: UInt32,
    sentence: String
  ) throws {
    let bench = try Bench.journalling(DeviceText.lamp())
    try bench.stop()
    let file = unsafe open(bench.journalPath, O_WRONLY)
    var word = number.bigEndian
    #expect(unsafe pwrite(file, &word, 4, offset) == 4)
    close(file)

    let gateway = try GatewayProcess(
      configuration: bench.folder + "/settle.yaml",
      socketPath: bench.socketPath
    )

    #expect(gateway.waitForExit() == 78)
    #expect(gateway.log().contains(sentence))
    #expect(!ControlClient.accepts(bench.socketPath))
  }

  @Test func `an unusable folder degrades the journal, as log, replies and status report`()
    throws
  {
    let bench = try Bench.running(
      devices: DeviceText.levels(2, policy: Self.patient),
      settings: "journal: {path: /proc/nothing/journal.db}\nshutdown: {timeout: 300ms}"
    )
    let witness = try bench.witness()
    let gateway = try bench.running()
    #expect(gateway.waitForLine(containing: "Journal degraded") != nil)
    let status = try #require(witness.messages.last { $0.topic == "settle/status" })
    #expect(status.text == "online")
    #expect(status.userProperties["journal"]?.hasPrefix("degraded: ") == true)

    let reply = try bench.client().ask(#"{"key":"dev0/level","set":3}"#)
    #expect(reply["phase"] == "accepted")
    #expect(reply["reason"]?.string?.hasPrefix("held in memory only") == true)
    let client = try bench.client()
    client.send(#"{"key":"dev1/level","set":4,"now":true,"wait":"sent"}"#)
    _ = try client.next { $0["phase"] == "sent" }
    bench.broker.stop(signal: SIGKILL)
    gateway.signal(SIGTERM)

    #expect(gateway.waitForExit() == 1)
    #expect(gateway.lines(containing: "1 not sent: dev0/level").count == 1)
    #expect(gateway.lines(containing: "kept").isEmpty)
  }

  @Test(.enabled(if: SmallDisk.isPossible, "only root can mount a file system"))
  func `a disk that is full at the start degrades, and recovers when there is space`() throws {
    let disk = try SmallDisk(bytes: 3 << 20)
    disk.fill()
    let bench = try Bench.running(
      devices: DeviceText.levels(1, policy: Self.patient),
      settings: "journal: {path: \(disk.path)/journal.db}"
    )
    let witness = try bench.witness()
    let client = try bench.client()
    let reply = try client.ask(#"{"key":"dev0/level","set":3}"#)
    #expect(reply["reason"]?.string?.contains("the disk is full") == true)

    disk.empty()

    #expect(try bench.running().waitForLine(containing: "Journal recovered") != nil)
    #expect(
      witness.waitFor {
        $0.last { $0.topic == "settle/status" }.map { $0.userProperties.isEmpty } ?? false
      }
    )
    #expect(try client.ask(#"{"key":"dev0/level","set":4}"#)["reason"] == .null)
    try bench.crash()
    try bench.startGateway()
    #expect(witness.waitFor("cmd/dev0", #"{"v":4}"#))
    _ = disk
  }

  @Test func `a value whose commit fails is refused when the disk has an older one`() throws {
    let bench = try Bench.journalling(
      DeviceText.levels(2, policy: Self.patient),
      journal: "commit: 500ms"
    )
    let client = try bench.client()
    client.send(#"{"watch":"*","id":"w"}"#)
    _ = try client.ask(#"{"key":"dev0/level","set":1}"#)
    try bench.running().limitFiles(to: 0)
    // Both are held until the next commit, which fails.
    for value in 2...3 {
      client.send(#"{"key":"dev0/level","set":\#(value),"wait":"sent","id":\#(value)}"#)
    }
    client.send(#"{"key":"dev1/level","set":4,"id":4}"#)

    for value in 2...3 {
      let reply = try client.next { $0["id"] == .integer(Int64(value)) }
      #expect(reply["phase"] == "rejected")
      #expect(reply["value"] == .integer(Int64(value)))
      #expect(reply["reason"]?.string?.contains("would send an older value again") == true)
    }
    let other = try client.next { $0["id"] == 4 }
    #expect(other["phase"] == "accepted")
    #expect(other["reason"]?.string?.hasPrefix("held in memory only") == true)
    let rows = try client.next(afterAsking: #"{"pending":"*","id":"p"}"#)["pending"]
    guard case .array(let pending)? = rows else {
      Issue.record("no rows")
      return
    }
    #expect(pending.map { $0["key"] } == ["dev1/level"])
    // What was accepted is not undone: after a crash it is the value.
    try bench.crash()
    try bench.startGateway()
    #expect(try bench.witness().waitFor("cmd/dev0", #"{"v":1}"#))
    #expect(try bench.witness().texts(on: "cmd/dev0") == [#"{"v":1}"#])
  }

  @Test func `while the disk fails only changes that a crash would undo are refused`()
    throws
  {
    let bench = try Bench.journalling(
      """
      \(DeviceText.levels(2, policy: Self.patient))
      boiler:
        properties:
          mode: {type: choice, values: [off, heat], urgent: [off], policy: \(Self.patient), \
      command: {topic: cmd/mode, payload: $value}}

      """,
      journal: "commit: 10ms"
    )
    let witness = try bench.witness()
    let client = try bench.client()
    _ = try client.ask(#"{"key":"dev0/level","set":1}"#)
    _ = try client.ask(#"{"key":"boiler/mode","set":"heat"}"#)
    try bench.running().limitFiles(to: 0)
    // The first write that fails tells; its own value has no older one on the disk.
    let first = try client.ask(#"{"key":"dev1/level","set":1}"#)
    #expect(first["phase"] == "accepted")
    #expect(first["reason"]?.string?.hasPrefix("held in memory only") == true)

    let refused = try client.ask(#"{"key":"dev0/level","set":2}"#)
    #expect(refused["phase"] == "rejected")
    #expect(refused["reason"]?.string?.contains("would send an older value again") == true)
    let urgent = try client.ask(#"{"key":"boiler/mode","set":"off"}"#)
    #expect(urgent["phase"] == "accepted")
    #expect(witness.waitFor("cmd/mode", "off"))

    try bench.running().limitFiles(to: nil)
    #expect(try bench.running().waitForLine(containing: "Journal recovered") != nil)
    #expect(try client.ask(#"{"key":"dev0/level","set":3}"#)["phase"] == "accepted")
    try bench.crash()
    try bench.startGateway()
    #expect(witness.waitFor("cmd/dev0", #"{"v":3}"#))
    #expect(witness.waitFor("cmd/dev1", #"{"v":1}"#))
    #expect(!witness.texts(on: "cmd/mode").contains("heat"))
  }
}

extension ControlClient {
  /// Asks, and returns the reply that carries the id `p`.
  fileprivate func next(afterAsking line: String) throws -> JSONValue {
    send(line)
    return try next { $0["id"] == "p" }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// Devices of a template: listed ones, and those that appear with their first message.
@Suite(.blocking) struct ArrivalScenarios {
  private static func fleet(_ head: String = "from: fleet/+/status") -> String {
    """
    node-$1:
      \(head)
      name: Node $1
      topic: fleet/$1
      properties:
        power:
          type: boolean
          policy: {delay: 20ms}
          command: {topic: $topic/set, payload: {id: $1, on: $value}}
          state: {topic: $topic/status, value: /on}
        level: {type: integer, range: [0, 100], policy: {delay: 20ms}, command: {topic: $topic/level}}
      availability: {topic: $topic/online}
    """
  }

  private func rows(_ client: ControlClient, _ pattern: String) throws -> [JSONValue] {
    guard case .array(let rows)? = try client.ask(#"{"get":"\#(pattern)"}"#)["get"] else {
      return []
    }
    return rows
  }

  /// Waits until so many keys match.
  private func wait(for count: Int, _ pattern: String, _ client: ControlClient) throws
    -> [JSONValue]
  {
    var wait = Wait()
    while true {
      let rows = try rows(client, pattern)
      if rows.count == count || wait.remaining(rows.count) == nil { return rows }
    }
  }

  @Test func `a device appears with its first message, which is its first report`() throws {
    let bench = try Bench.running(devices: Self.fleet())
    let witness = try bench.witness()
    let client = try bench.client()
    #expect(try rows(client, "*").isEmpty)

    witness.publish("fleet/7/status", #"{"on":true}"#)
    let found = try wait(for: 2, "node-*", client)

    #expect(found.map { $0["key"] } == ["node-7/power", "node-7/level"])
    #expect(witness.waitFor("settle/node-7/power", "true"))
    witness.publish("settle/node-7/power/set", "off")
    #expect(witness.texts(on: "fleet/7/set", count: 1) == [#"{"id":7,"on":false}"#])
    witness.publish("fleet/7/status", #"{"on":false}"#)
    #expect(try bench.event(of: "node-7/power", "confirmed")["value"] == false)
    #expect(try bench.running().lines(containing: "Devices appeared").count == 1)
  }

  @Test func `a thousand devices appear, with the newest of their reports`() throws {
    // As many messages as mosquitto keeps for a slow subscriber of itself, twice.
    let bench = try Bench(devices: Self.fleet(), options: .roomy)
    try bench.broker.start()
    try bench.startGateway()
    let witness = try bench.witness()
    let client = try bench.client()

    for number in 1...1000 { witness.publish("fleet/n\(number)/status", #"{"on":true}"#) }
    for number in 1...1000 { witness.publish("fleet/n\(number)/status", #"{"on":false}"#) }

    let found = try wait(for: 1000, "node-*/power", client)
    #expect(found.count == 1000)
    #expect(witness.waitFor("settle/node-n1000/power", "false"))
    #expect(witness.waitFor("settle/node-n1/power", "false"))
    #expect(try rows(client, "node-n500/power").map { $0["actual"] } == [false])
  }

  @Test func `a name that no device can have, and one too many, are refused and logged once`()
    throws
  {
    let bench = try Bench.running(devices: Self.fleet(), settings: "limits: {devices: 2}")
    let witness = try bench.witness()
    let client = try bench.client()

    for _ in 0..<2 { witness.publish("fleet/Küche/status", #"{"on":true}"#) }
    for number in 1...5 { witness.publish("fleet/\(number)/status", #"{"on":true}"#) }
    #expect(try wait(for: 4, "node-*", client).count == 4)
    witness.publish("fleet/6/status", #"{"on":true}"#)
    witness.publish("settle/node-1/level/set", "9")
    #expect(witness.waitFor("fleet/1/level", "9"))

    #expect(try rows(client, "node-*").count == 4)
    let gateway = try bench.running()
    #expect(gateway.lines(containing: "A message names a device that cannot be").count == 1)
    #expect(gateway.lines(containing: "Too many devices").count == 1)
    let status = try client.ask(#"{"status":true}"#)
    #expect("\(status)".contains("devices_refused"))
  }

  @Test func `a reload keeps the devices of a template, and drops them with it`() throws {
    let bench = try Bench.running(devices: Self.fleet())
    let witness = try bench.witness()
    let client = try bench.client()
    witness.publish("fleet/7/status", #"{"on":true}"#)
    _ = try wait(for: 2, "node-*", client)
    let path = bench.folder + "/devices/devices.yaml"

    try TextFile.write(Self.fleet().replacing("$topic/level", with: "$topic/lvl"), to: path)
    #expect(try client.ask(#"{"reload":true}"#)["reloaded"]?["keys"] == 2)
    witness.publish("settle/node-7/level/set", "9")
    #expect(witness.waitFor("fleet/7/lvl", "9"))
    #expect(try rows(client, "node-7/power").map { $0["actual"] } == [true])

    try TextFile.write(Self.fleet().replacing("node-$1:", with: "other-$1:"), to: path)
    #expect(try client.ask(#"{"reload":true}"#)["reloaded"]?["keys"] == 0)
    #expect(try rows(client, "*").isEmpty)
    witness.publish("fleet/8/status", #"{"on":true}"#)
    #expect(try wait(for: 2, "other-8/*", client).count == 2)
  }

  @Test func `a journalled value waits for its device after a crash`() throws {
    let slow = Self.fleet().replacing("delay: 20ms", with: "delay: 60s")
    let bench = try Bench.journalling(slow)
    let witness = try bench.witness()
    witness.publish("fleet/7/status", #"{"on":true}"#)
    _ = try wait(for: 2, "node-*", try bench.client())
    #expect(
      try bench.client().ask(#"{"key":"node-7/level","set":9,"id":"mine"}"#)["phase"]
        == "accepted"
    )

    try bench.crash()
    try bench.startGateway()
    #expect(try rows(try bench.client(), "*").isEmpty)
    #expect(witness.texts(on: "fleet/7/level") == [])
    witness.publish("fleet/7/status", #"{"on":true}"#)

    #expect(witness.texts(on: "fleet/7/level", count: 1) == ["9"])
    #expect(try bench.event(of: "node-7/level", "sent")["id"] == "mine")
  }

  @Test func `a journalled value whose device never appears expires, and the log says so`() throws {
    let slow = Self.fleet().replacing("delay: 20ms", with: "delay: 60s")
    let bench = try Bench.journalling(slow, settings: "ttl: 3s")
    let witness = try bench.witness()
    witness.publish("fleet/7/status", #"{"on":true}"#)
    _ = try wait(for: 2, "node-*", try bench.client())
    _ = try bench.client().ask(#"{"key":"node-7/level","set":9}"#)

    try bench.crash()
    try bench.startGateway()

    let line = try bench.running().waitForLine(containing: "Journalled value expired")
    #expect(line?.contains("node-7/level") == true)
    #expect(witness.texts(on: "fleet/7/level") == [])
  }

  @Test func `listed devices are commanded, listed and described like any other`() throws {
    let text = Self.fleet("for: [1..300]").replacing("$1", with: "$n")
    let bench = try Bench.running(devices: text)
    let witness = try bench.witness()
    let client = try bench.client()

    #expect(try rows(client, "node-*").count == 600)
    #expect(try rows(client, "node-30?/*").count == 2)
    witness.publish("settle/node-217/set", #"{"power":true,"level":4}"#)
    #expect(witness.waitFor("fleet/217/level", "4"))
    #expect(witness.waitFor("fleet/217/set", #"{"id":217,"on":true}"#))
    let reply = try client.ask(#"{"key":"node-301/level","set":4}"#)
    #expect(reply["phase"] == "rejected")
    let reloaded = try client.ask(#"{"reload":true}"#)
    #expect(reloaded["reloaded"]?["changed"] == .array([]))
  }
}

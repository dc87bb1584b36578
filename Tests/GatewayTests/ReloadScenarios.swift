// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// Devices and policies reloaded while the gateway runs.
@Suite(.blocking) struct ReloadScenarios {
  private let slow = "{delay: 60s, max_wait: none}"
  private let quick = "{delay: 50ms, max_wait: none}"

  private func rewrite(_ bench: Bench, _ devices: String) throws {
    try TextFile.write(devices, to: bench.folder + "/devices/devices.yaml")
  }

  private func keys(_ reply: JSONValue, _ name: String) -> [String] {
    guard case .array(let items) = reply["reloaded"]?[name] else { return [] }
    return items.compactMap(\.string)
  }

  @Test func `pending values stay and are sent after a reload`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(3, policy: slow))
    let witness = try bench.witness()
    let client = try bench.client()
    _ = try client.ask(#"{"key":"dev1/level","set":7}"#)

    try rewrite(bench, DeviceText.levels(5, policy: quick))
    let reply = try client.ask(#"{"reload":true,"id":"r"}"#)

    #expect(reply["id"] == "r")
    #expect(reply["reloaded"]?["keys"] == 5)
    #expect(keys(reply, "added") == ["dev3/level", "dev4/level"])
    #expect(keys(reply, "changed") == ["dev0/level", "dev1/level", "dev2/level"])
    let pending = try client.ask(#"{"pending":"*"}"#)
    guard case .array(let rows) = pending["pending"] else {
      Issue.record("no rows: \(pending)")
      return
    }
    // It keeps the deadline that it had; the next change settles by the new policy.
    #expect(rows.map { $0["key"] } == ["dev1/level"])
    #expect((50_000...60_000).contains(rows.first?["due_ms"]?.double ?? 0))
    _ = try client.ask(#"{"key":"dev1/level","set":8}"#)
    _ = try client.ask(#"{"key":"dev4/level","set":9}"#)
    #expect(witness.texts(on: "cmd/dev1", count: 1) == [#"{"v":8}"#])
    #expect(witness.texts(on: "cmd/dev4", count: 1) == [#"{"v":9}"#])
  }

  @Test func `a reload without discovery shows no lamp in Home Assistant's schema`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()
    let client = try bench.client()

    try rewrite(bench, DeviceText.lamp(policy: quick))
    let reply = try client.ask(#"{"reload":true}"#)
    #expect(keys(reply, "changed") == ["desk-lamp/brightness"])
    _ = try client.ask(#"{"key":"desk-lamp/brightness","set":7}"#)

    #expect(witness.waitFor("zigbee2mqtt/desk_lamp/set", #"{"brightness":7}"#))
    #expect(!witness.messages.contains { $0.topic.hasSuffix("/light") })
  }

  @Test func `a file with mistakes is refused as a whole, and the configuration stays`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(2, policy: quick))
    let witness = try bench.witness()
    let client = try bench.client()

    try rewrite(
      bench,
      DeviceText.levels(3, policy: quick) + "other:\n  properties:\n    x: {typ: number}\n"
    )
    let reply = try client.ask(#"{"reload":true}"#)

    #expect(reply["error"]?["code"] == "bad_configuration")
    let message = reply["error"]?["message"]?.string ?? ""
    #expect(message.contains("devices.yaml:"))
    #expect(message.contains("'type'"))
    _ = try client.ask(#"{"key":"dev1/level","set":5}"#)
    #expect(witness.texts(on: "cmd/dev1", count: 1) == [#"{"v":5}"#])
    // The good part of the bad file does not count either.
    let unknown = try client.ask(#"{"key":"dev2/level","set":1}"#)
    #expect(unknown["phase"] == "rejected")
    #expect(try bench.running().lines(containing: "Reload refused").count == 1)
  }

  @Test func `SIGHUP does the same, and the result is logged`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(1, policy: quick))
    let witness = try bench.witness()
    let gateway = try bench.running()

    try rewrite(bench, DeviceText.levels(2, policy: quick))
    gateway.signal(SIGHUP)
    #expect(gateway.waitForLine(containing: "Reloaded")?.contains("added=1") == true)
    witness.publish("settle/dev1/level/set", "3")
    #expect(witness.texts(on: "cmd/dev1", count: 1) == [#"{"v":3}"#])

    try rewrite(bench, "dev0: [")
    gateway.signal(SIGHUP)
    #expect(gateway.waitForLine(containing: "Reload refused") != nil)
    witness.publish("settle/dev1/level/set", "4")
    #expect(witness.texts(on: "cmd/dev1", count: 2) == [#"{"v":3}"#, #"{"v":4}"#])
  }

  @Test func `the commands of a removed device are cancelled, and its topics are cleared`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(2, policy: slow))
    let witness = try bench.witness()
    let client = try bench.client()
    client.send(#"{"key":"dev0/level","set":7,"id":"a","wait":"sent"}"#)
    #expect(try client.next()["phase"] == "accepted")
    #expect(witness.waitFor("settle/dev0/level", "7"))
    #expect(witness.waitFor("settle/dev0", #"{"level":7}"#))

    try rewrite(bench, DeviceText.levels(2, policy: slow).replacing("dev0:", with: "lamp:"))
    client.send(#"{"reload":true,"id":"r"}"#)

    let cancelled = try client.next { $0["phase"] == "cancelled" }
    #expect(cancelled["phase"] == "cancelled")
    #expect(cancelled["reason"] == "its device file names it no more")
    let reply = try client.next { $0["id"] == "r" }
    #expect(keys(reply, "removed") == ["dev0/level"])
    #expect(keys(reply, "added") == ["lamp/level"])
    for topic in ["settle/dev0/level", "settle/dev0", "settle/dev0/info"] {
      #expect(witness.waitFor(topic, ""), "\(topic) is still retained")
    }
    let unknown = try client.ask(#"{"key":"dev0/level","set":1}"#)
    #expect(unknown["phase"] == "rejected")

    // Back again: a key like any other.
    try rewrite(bench, DeviceText.levels(2, policy: quick))
    #expect(keys(try client.ask(#"{"reload":true}"#), "added") == ["dev0/level"])
    _ = try client.ask(#"{"key":"dev0/level","set":12}"#)
    #expect(witness.texts(on: "cmd/dev0", count: 1) == [#"{"v":12}"#])
  }

  @Test func `states of new devices are received, those of removed devices are not`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()
    let client = try bench.client()
    witness.publish("zigbee2mqtt/desk_lamp", Array(#"{"brightness":40}"#.utf8), retain: true)
    witness.publish("zigbee2mqtt/floor", Array(#"{"brightness":90}"#.utf8), retain: true)
    #expect(witness.waitFor("settle/desk-lamp/brightness", "40"))

    let floor = DeviceText.lamp().replacing("desk-lamp", with: "floor")
      .replacing("zigbee2mqtt/desk_lamp", with: "zigbee2mqtt/floor")
    try rewrite(bench, floor)
    _ = try client.ask(#"{"reload":true}"#)

    // What the broker has kept comes with the new subscription.
    #expect(witness.waitFor("settle/floor/brightness", "90"))
    #expect(witness.waitFor("settle/desk-lamp/brightness", ""))
    witness.publish("zigbee2mqtt/desk_lamp", Array(#"{"brightness":41}"#.utf8), retain: true)
    witness.publish("zigbee2mqtt/floor", Array(#"{"brightness":91}"#.utf8), retain: true)
    #expect(witness.waitFor("settle/floor/brightness", "91"))
    #expect(!witness.texts(on: "settle/desk-lamp/brightness").contains("41"))
  }

  @Test func `sections that need a restart are named, and others count at once`() throws {
    let bench = try Bench.running(
      devices: DeviceText.levels(1, policy: quick),
      settings: "ttl: 60s"
    )
    let client = try bench.client()
    let settings = TextFile.read(bench.folder + "/settle.yaml") ?? ""
    try TextFile.write(
      settings.replacing("ttl: 60s", with: "ttl: 30s\nlimits: {pending: 77}")
        + "\ninputs:\n  - {topic: remote/action, map: "
        + "{up: {key: dev0/level, step: 5}}}\n",
      to: bench.folder + "/settle.yaml"
    )

    let reply = try client.ask(#"{"reload":true}"#)

    #expect(keys(reply, "restart") == ["limits"])
    let witness = try bench.witness()
    _ = try client.ask(#"{"key":"dev0/level","set":5,"now":true}"#)
    #expect(witness.texts(on: "cmd/dev0", count: 1) == [#"{"v":5}"#])
    witness.publish("remote/action", "up")
    #expect(witness.texts(on: "cmd/dev0", count: 2) == [#"{"v":5}"#, #"{"v":10}"#])
  }

  @Test func `concurrent reloads are all answered, the last with the newest files`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(1, policy: quick))
    let clients = try (0..<4).map { _ in try bench.client() }
    try rewrite(bench, DeviceText.levels(40, policy: quick))

    for (number, client) in clients.enumerated() {
      client.send(#"{"reload":true,"id":\#(number)}"#)
    }

    for (number, client) in clients.enumerated() {
      let reply = try client.next()
      #expect(reply["id"] == .integer(Int64(number)))
      #expect(reply["reloaded"]?["keys"] == 40)
    }
  }

  @Test func `a journalled value survives a reload and a crash after it`() throws {
    let journal = "journal: {path: journal, commit: 20ms}"
    let bench = try Bench.running(devices: DeviceText.levels(1, policy: slow), settings: journal)
    let client = try bench.client()
    _ = try client.ask(#"{"key":"dev0/level","set":7}"#)
    try rewrite(bench, DeviceText.levels(3, policy: slow))
    _ = try client.ask(#"{"reload":true}"#)
    _ = try client.ask(#"{"key":"dev2/level","set":9}"#)

    let gateway = try bench.running()
    gateway.signal(SIGKILL)
    #expect(gateway.waitForExit() == -SIGKILL)
    try bench.startGateway()

    let again = try bench.client()
    _ = try again.ask(#"{"flush":"*"}"#)
    let witness = try bench.witness()
    #expect(witness.texts(on: "cmd/dev0", count: 1) == [#"{"v":7}"#])
    #expect(witness.texts(on: "cmd/dev2", count: 1) == [#"{"v":9}"#])
  }

  @Test func `settle reload prints the differences, and exits with 78 for a bad file`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(1, policy: quick))
    try rewrite(bench, DeviceText.levels(2, policy: quick))
    let good = try SettleRun(["reload"], socketPath: bench.socketPath)
    #expect(good.waitForExit() == 0)
    #expect(good.output == "2 devices, 2 keys\nadded    dev1/level\n")

    try rewrite(bench, "dev0: {nme: x}\n")
    let bad = try SettleRun(["reload"], socketPath: bench.socketPath)
    #expect(bad.waitForExit() == 78)
    #expect(bad.output.isEmpty)
    #expect(bad.errors.contains("devices.yaml:1:"))
    #expect(bad.errors.hasPrefix("settle: refused; the previous configuration stays in effect:\n"))
  }
}

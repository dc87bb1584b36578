// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// The start of a gateway and its broker.
@Suite(.blocking) struct StartScenarios {
  @Test func `values that arrive before the broker is up are held and delivered`() throws {
    let bench = try Bench(devices: DeviceText.levels(3, policy: "{delay: 20ms}"))
    try bench.launchGateway()
    let client = try bench.client()
    for number in 0..<3 {
      for value in 1...2 {
        let line = #"{"key":"dev\#(number)/level","set":\#(value),"now":true,"id":"h"}"#
        _ = try client.ask(line)
      }
    }

    try bench.broker.start()
    let witness = try bench.witness()
    client.passOverReplies()

    // Whatever the witness was too late for is in the gateway's word.
    _ = try bench.running().waitForLine(containing: "Connected to the broker")
    client.send(#"{"watch":"*"}"#)
    client.send(#"{"key":"dev2/level","set":3,"wait":"sent","id":"end"}"#)
    _ = try client.next { $0["id"] == "end" && $0["phase"] == "sent" }
    guard case .array(let rows) = try client.askFor("get", #"{"get":"*"}"#) else {
      Issue.record("no rows")
      return
    }
    #expect(rows.map { $0["phase"] } == ["sent", "sent", "sent"])
    #expect(rows.map { $0["target"] } == [2, 2, 3])
    #expect(witness.waitFor("cmd/dev2", #"{"v":3}"#))
  }

  @Test func `a held value expires if the broker is not up in time`() throws {
    let bench = try Bench(
      devices: DeviceText.levels(1, policy: "{delay: 20ms}", more: ", ttl: 300ms")
    )
    try bench.launchGateway()
    let client = try bench.client()

    client.send(#"{"key":"dev0/level","set":1,"wait":"sent"}"#)

    #expect(try client.next()["phase"] == "accepted")
    let end = try client.next()
    #expect(end["phase"] == "expired")
    #expect(end["reason"]?.string?.contains("broker") == true)
  }

  @Test func `a password file authenticates at a broker that requires one`() throws {
    var options = TestBroker.Options()
    options.users = ["settle": "secret word"]
    let bench = try Bench(
      devices: DeviceText.levels(1, policy: "{delay: 20ms}"),
      mqtt: ", username: settle, password_file: mqtt.password",
      options: options
    )
    try TextFile.write("secret word\n", to: bench.folder + "/mqtt.password")
    try bench.broker.start()

    try bench.launchGateway()
    #expect(try bench.running().waitForLine(containing: "Connected to the broker") != nil)

    let client = try bench.client()
    client.send(#"{"key":"dev0/level","set":1,"wait":"sent"}"#)
    #expect(try client.next { $0["phase"] == "sent" }["value"] == 1)
    #expect(try !bench.running().log().contains("secret"))
  }

  @Test func `a wrong password is logged once, in words`() throws {
    var options = TestBroker.Options()
    options.users = ["settle": "right"]
    let bench = try Bench(
      devices: DeviceText.lamp(),
      mqtt: ", username: settle",
      options: options
    )
    try bench.broker.start()

    try bench.launchGateway(environment: ["SETTLE_MQTT_PASSWORD": "wrong"])

    let line = try #require(try bench.running().waitForLine(containing: "No connection"))
    #expect(line.contains("not authorized") || line.contains("bad user name"))
    #expect(!line.contains("wrong"))
    #expect(try bench.client().ask(#"{"get":"desk-lamp/power","id":1}"#)["id"] == 1)
  }

  @Test func `under 3.1.1 commands, echo and confirmation are the same`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp(), mqtt: ", protocol: 3.1.1")
    let witness = try bench.witness()

    witness.publish("settle/desk-lamp/brightness/set", "1")
    witness.publish("settle/desk-lamp/brightness/set", "40")

    #expect(witness.waitFor("zigbee2mqtt/desk_lamp/set", #"{"brightness":40}"#))
    witness.publish("zigbee2mqtt/desk_lamp", #"{"brightness":40}"#)
    #expect(
      witness.waitFor {
        $0.contains {
          $0.topic == "settle/desk-lamp/brightness/event" && $0.text.contains("confirmed")
        }
      }
    )
    #expect(witness.waitFor("settle/desk-lamp", #"{"brightness":40}"#))
    try bench.running().signal(SIGTERM)
    #expect(try bench.running().waitForExit() == 0)
    #expect(witness.waitFor("settle/status", "offline"))
  }

  @Test func `mistakes in the files are reported with their positions, and it does not start`()
    throws
  {
    let bench = try Bench(devices: "desk-lamp:\n  profil: zigbee2mqtt/light\n")
    let gateway = try GatewayProcess(
      configuration: bench.folder + "/settle.yaml",
      socketPath: bench.socketPath
    )

    #expect(gateway.waitForExit() == 78)
    #expect(gateway.log().contains("devices.yaml:2:3"))
    #expect(gateway.log().contains("profile"))
  }
}

extension ControlClient {
  /// Asks, and returns the member `name` of the first reply that has it.
  fileprivate func askFor(_ name: String, _ line: String) throws -> JSONValue? {
    send(line)
    return try next { $0[name] != nil }[name]
  }
}

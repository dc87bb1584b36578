// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
@testable import Import
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// `import: auto`: a gateway that follows what is announced.
@Suite(.blocking) struct FollowScenarios {
  private static let follow = "import: {quiet: 100ms}\n"
  private static let imported = "devices/imported-zigbee2mqtt.yaml"

  /// A switch of Zigbee2MQTT.
  private static func device(_ name: String) -> String {
    """
    {"ieee_address":"0x\(name)","type":"Router","supported":true,"disabled":false,\
    "friendly_name":"\(name)","definition":{"model":"M","vendor":"V","exposes":[{"type":"switch",\
    "features":[{"type":"binary","name":"state","property":"state","access":7,"value_on":"ON",\
    "value_off":"OFF"}]}]}}
    """
  }

  private static func announce(_ names: String..., in home: ImportHome) throws {
    let list = "[\(names.map(device).joined(separator: ","))]"
    try #require(home.client.publish("zigbee2mqtt/bridge/devices", list, retain: true))
  }

  private static let lamp = """
    lamp:
      properties:
        level:
          type: integer
          range: [0, 100]
          policy: {delay: 300s, max_wait: none}
          command: {topic: cmd/lamp, payload: $value}

    """

  /// A home whose gateway follows, with a hand-written lamp.
  private static func following(_ more: String = "") throws -> ImportHome {
    let home = try ImportHome([])
    try home.add(settings: follow + more)
    try home.makeFolder("devices")
    try TextFile.write(lamp, to: "\(home.folder)/devices/lamp.yaml")
    return home
  }

  @Test func `an announced device appears, and what is pending stays and is sent once`() throws {
    let home = try Self.following()
    try home.startGateway()
    try #require(home.client.publish("settle/lamp/level/set", "7"))
    try #require(home.awaits { $0["queue"]?["pending"] == 1 })

    try Self.announce("plug", in: home)

    #expect(home.awaits { $0["devices"]?["count"] == 2 })
    #expect(try home.settle(["devices"]).output.contains("plug"))
    let status = try #require(home.status())
    #expect(status["import"]?["added"] == ["plug"])
    #expect(status["import"]?["added_count"] == 1)
    #expect(status["import"]?["devices"] == 1)
    #expect(status["import"]?["folder"] == .string("\(home.folder)/devices"))
    #expect(status["queue"]?["pending"] == 1)
    #expect(try home.settle(["flush"]).code == 0)
    #expect(home.client.waitFor { $0.contains { $0.topic == "cmd/lamp" } })
    try #require(home.client.publish("settle/plug/power/set", "ON"))
    #expect(home.client.waitFor { $0.contains { $0.topic == "zigbee2mqtt/plug/set" } })
    #expect(home.client.texts(on: "cmd/lamp") == ["7"])
  }

  @Test func `announcements at the start are imported, and those of a restart change no file`()
    throws
  {
    let home = try Self.following()
    try Self.announce("plug", in: home)
    try home.startGateway()
    try #require(home.awaits { $0["devices"]?["count"] == 2 })
    let before = home.inode(of: Self.imported)
    home.stopGateway()

    try home.startGateway()
    try #require(home.awaits { $0["import"]?["age_ms"]?.double != nil })

    #expect(home.inode(of: Self.imported) == before)
    #expect(home.lines(containing: "Reloaded") == 1)
    #expect(home.lines(containing: "Devices imported") == 1)
  }

  @Test func `a scene is one message for a group that the bridge has announced with its members`()
    throws
  {
    func announceGroup(_ members: [String]) throws {
      let list = members.map { #"{"ieee_address":"0x\#($0)","endpoint":1}"# }
      let group = #"[{"id":1,"friendly_name":"all","members":[\#(list.joined(separator: ","))]}]"#
      try #require(home.client.publish("zigbee2mqtt/bridge/groups", group, retain: true))
    }
    func sent(_ messages: [RecordingSubscriber.Message]) -> [String] {
      messages.map(\.topic).filter { $0.hasSuffix("/set") && $0.hasPrefix("zigbee") }
    }
    let names = (1...6).map { "plug-\($0)" }
    let home = try Self.following()
    let list = "[\(names.map(Self.device).joined(separator: ","))]"
    try #require(home.client.publish("zigbee2mqtt/bridge/devices", list, retain: true))
    try announceGroup(names)
    try home.startGateway()
    try #require(home.awaits { $0["devices"]?["count"] == 8 })
    let scenes = ["evening": "on", "night": "off"].map { name, power in
      "  \(name):\n" + names.map { "    \($0): {power: \(power)}\n" }.joined()
    }
    try TextFile.write("scenes:\n\(scenes.joined())", to: "\(home.folder)/devices/scenes.yaml")
    #expect(try home.settle(["reload"]).code == 0)

    #expect(try home.settle(["scene", "evening", "--now"]).code == 0)
    #expect(home.client.waitFor { $0.contains { $0.topic == "zigbee2mqtt/all/set" } })
    #expect(sent(home.client.messages) == ["zigbee2mqtt/all/set"])

    try announceGroup(names + ["unknown"])
    // What is sent after the group is received after it.
    try #require(home.client.publish("settle/lamp/level/set", "7"))
    try #require(home.awaits { $0["queue"]?["pending"] == 1 })
    #expect(try home.settle(["scene", "night", "--now"]).code == 0)
    #expect(home.client.waitFor { sent($0).count == 7 })
    let alone = sent(home.client.messages).dropFirst()
    #expect(Set(alone) == Set(names.map { "zigbee2mqtt/\($0)/set" }))
  }

  @Test func `a thousand announcements at once are one import and one reload`() throws {
    let home = try Self.following()
    try home.startGateway()
    for number in 1...1000 {
      let config =
        #"{"name":"L\#(number)","unique_id":"l\#(number)","command_topic":"l/\#(number)"}"#
      home.client.publish("homeassistant/switch/l\(number)/config", config, qos: 0)
    }

    #expect(home.awaits { $0["import"]?["devices"] == 1000 && $0["devices"]?["count"] == 1001 })

    let imports = home.lines(containing: "Devices imported")
    #expect(home.lines(containing: "Reloaded") == imports)
    // A slow client may pause for longer than the quiet time of this test.
    #expect(imports < 10)
  }

  @Test func `a device that is no longer announced stays, and the status names it`() throws {
    let home = try Self.following()
    try Self.announce("plug", "fan", in: home)
    try home.startGateway()
    try #require(home.awaits { $0["devices"]?["count"] == 3 })
    #expect(home.status()?["import"]?["gone_count"] == 0)

    try Self.announce("fan", in: home)

    #expect(home.awaits { $0["import"]?["gone"] == ["plug"] })
    #expect(home.status()?["devices"]?["count"] == 3)
    try Self.announce("plug", "fan", in: home)
    #expect(home.awaits { $0["import"]?["gone"] == [] })
  }

  @Test func `an edited file stays as it is edited`() throws {
    let home = try Self.following()
    try home.startGateway()
    try Self.announce("plug", in: home)
    try #require(home.awaits { $0["devices"]?["count"] == 2 })
    let path = "\(home.folder)/\(Self.imported)"
    let edited = try #require(TextFile.read(path)).replacing("name: Plug", with: "name: Heater")
    try TextFile.write(edited + "# mine\n", to: path)
    #expect(try home.settle(["reload"]).code == 0)

    try Self.announce("plug", "fan", in: home)

    #expect(home.awaits { $0["devices"]?["count"] == 3 })
    let text = try #require(TextFile.read(path))
    #expect(text.contains("# mine\n"))
    #expect(text.contains("\nfan:\n"))
  }

  @Test(arguments: ["mistake", "change"])
  func `with hand-written files that are being edited it writes, waits, and says so once`(
    kind: String
  ) throws {
    let home = try Self.following()
    try home.startGateway()
    let path = "\(home.folder)/devices/lamp.yaml"
    let other = kind == "mistake" ? "  polcy: 5\n" : "  name: Other\n"
    try TextFile.write(Self.lamp + other, to: path)

    try Self.announce("plug", in: home)
    try #require(home.awaits { $0["import"]?["devices"] == 1 })
    try Self.announce("plug", "fan", in: home)
    try #require(home.awaits { $0["import"]?["devices"] == 2 })

    #expect(home.device(file: "imported-zigbee2mqtt.yaml").contains("\nfan:\n"))
    let status = try #require(home.status())
    #expect(status["devices"]?["count"] == 1)
    let unused = status["import"]?["unused"]?.string ?? ""
    #expect(unused.contains(kind == "mistake" ? "unknown key 'polcy'" : "has changed"))
    #expect(home.lines(containing: "and count after a reload") == 1)
    #expect(home.lines(containing: "Reload") == 0)

    try TextFile.write(Self.lamp, to: path)
    #expect(try home.settle(["reload"]).code == 0)
    #expect(home.awaits { $0["devices"]?["count"] == 3 })
    #expect(home.status()?["import"]?["unused"] == .null)
  }

  @Test func `a folder that cannot be written gives way to the state folder, now and at the start`()
    throws
  {
    let home = try Self.following()
    try home.makeFolder("state")
    let variables = ["STATE_DIRECTORY": "\(home.folder)/state"]
    try #require(unsafe chmod("\(home.folder)/devices", 0o500) == 0)
    try home.startGateway(environment: variables, withoutPrivileges: true)

    try Self.announce("plug", in: home)

    #expect(home.awaits { $0["devices"]?["count"] == 2 })
    #expect(home.names(in: "devices") == ["lamp.yaml"])
    #expect(home.names(in: "state/devices").contains("imported-zigbee2mqtt.yaml"))
    let checked = try home.settledBeside(["check"])
    #expect(checked.output.hasPrefix("OK: 2 devices, "), "\(checked.output)\(checked.errors)")
    home.stopGateway()
    try Self.announce(in: home)
    try home.startGateway(environment: variables, withoutPrivileges: true)
    #expect(home.awaits { $0["devices"]?["count"] == 2 })
    // It can be removed at the end.
    try #require(unsafe chmod("\(home.folder)/devices", 0o700) == 0)
    TemporaryFolder.remove("\(home.folder)/state/devices")
    TemporaryFolder.remove("\(home.folder)/state")
  }

  @Test func `without a folder that can be written it says so once, and runs`() throws {
    let home = try Self.following()
    try #require(unsafe chmod("\(home.folder)/devices", 0o500) == 0)
    try home.startGateway(withoutPrivileges: true)

    try Self.announce("plug", in: home)

    #expect(home.awaits { $0["import"]?["failure"]?.string?.contains("STATE_DIRECTORY") == true })
    try Self.announce("plug", "fan", in: home)
    #expect(home.awaits { $0["import"]?["announcements"] == 1 })
    #expect(home.lines(containing: "Nothing is imported") == 1)
    try #require(unsafe chmod("\(home.folder)/devices", 0o700) == 0)
  }

  @Test func `commands that control a bridge are refused, and a template keeps its devices`() throws
  {
    let home = try Self.following()
    let fleet = """
      pump-$1:
        from: pumps/+/status
        properties:
          power: {type: boolean, command: {topic: pumps/$1/set, payload: $value}}

      """
    try TextFile.write(fleet, to: "\(home.folder)/devices/pumps.yaml")
    try home.startGateway()
    let join = """
      {"name":"Permit join","unique_id":"j","command_topic":"zigbee2mqtt/bridge/request/permit_join",\
      "device":{"identifiers":["bridge"],"name":"Bridge"}}
      """
    let pump = #"{"name":"Pump","unique_id":"p","command_topic":"pumps/4/set"}"#
    let valve = #"{"name":"Valve","unique_id":"v","command_topic":"valves/4/set"}"#
    for (id, config) in [("join", join), ("pump", pump), ("valve", valve)] {
      try #require(home.client.publish("homeassistant/switch/\(id)/config", config, retain: true))
    }

    #expect(home.awaits { $0["devices"]?["count"] == 2 && $0["import"]?["refused_count"] == 1 })

    let text = home.device(file: "imported-homeassistant.yaml")
    #expect(text.contains("valves/4/set"))
    #expect(!text.contains("pumps/4/set"))
    #expect(!text.contains("permit_join"))
    let refused = home.status()?["import"]?["refused"]?.elements?.first
    #expect(refused?["subject"]?.string?.hasPrefix("Bridge") == true)
    #expect(home.lines(containing: "Not imported") == 1)
    // By hand it is possible, with a warning, and then it stays.
    let byHand = try home.settled(["import"])
    #expect(byHand.errors.contains("warning: Bridge"), "\(byHand.errors)")
    #expect(!home.device(file: "imported-homeassistant.yaml").contains("pumps/4/set"))
  }
}

extension ImportHome {
  /// Adds lines to the settings.
  fileprivate func add(settings: String) throws {
    let path = "\(folder)/settle.yaml"
    try TextFile.write((TextFile.read(path) ?? "") + settings, to: path)
  }

  /// Runs `settle` to its end.
  fileprivate func settle(_ arguments: [String]) throws -> ProgramRun {
    try run([BuiltProgram.path("settle")] + arguments + ["--socket", "\(folder)/s.sock"])
  }

  /// The gateway's status.
  fileprivate func status() -> JSONValue? {
    (try? settle(["status", "--json"])).flatMap { try? JSONParser.parse($0.output) }
  }

  /// Waits until the gateway's status satisfies a condition; `false` if that takes too long.
  fileprivate func awaits(_ condition: (JSONValue) -> Bool) -> Bool {
    var wait = Wait()
    var last: JSONValue?
    while wait.remaining() != nil {
      last = status()
      if let last, condition(last) { return true }
    }
    let text = last.map { JSONWriter.text($0) } ?? "no status"
    Issue.record("\(text)\n\(TextFile.read("\(folder)/gateway-errors") ?? "")")
    return false
  }

  /// How many lines of the gateway's log contain a text.
  fileprivate func lines(containing text: String) -> Int {
    (TextFile.read("\(folder)/gateway-errors") ?? "").split(separator: "\n").count {
      $0.contains(text)
    }
  }

  /// What tells whether a file was replaced.
  fileprivate func inode(of path: String) -> UInt {
    var status = stat()
    return unsafe stat("\(folder)/\(path)", &status) == 0 ? UInt(status.st_ino) : 0
  }
}

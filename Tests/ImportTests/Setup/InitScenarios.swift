// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import JSON
import Operations
import TestBroker
import Testing

/// `settle init` with real brokers.
@Suite(.blocking) struct InitScenarios {
  private static let lamp = """
    [{"ieee_address":"0x01","type":"Router","friendly_name":"Kitchen","supported":true,\
    "definition":{"model":"M","vendor":"V","exposes":[{"type":"light","features":[\
    {"type":"binary","name":"state","property":"state","access":7,"value_on":"ON",\
    "value_off":"OFF"},{"type":"numeric","name":"brightness","property":"brightness","access":7,\
    "value_min":0,"value_max":254}]}]}}]
    """

  private static func broker(_ options: TestBroker.Options = .init()) throws -> TestBroker {
    let broker = try TestBroker(options: options)
    try broker.start()
    return broker
  }

  @Test func `announced devices are written with the settings, and check finds no mistake`() throws
  {
    let broker = try Self.broker()
    let client = try RecordingSubscriber(port: broker.port)
    try #require(client.publish("zigbee2mqtt/bridge/devices", Array(Self.lamp.utf8), retain: true))
    let home = try SetupHome()
    let run = try home.initialise(["--broker", "127.0.0.1:\(broker.port)", "--yes"])
    #expect(run.code == 0, Comment(rawValue: run.errors))
    #expect(run.output.contains("ok    connection   mosquitto version "))
    #expect(run.output.contains("ok    protocol     MQTT 5\n"))
    #expect(run.output.contains("ok    credentials  none needed\n"))
    #expect(run.output.contains("ok    permissions  may publish and subscribe below settle/\n"))
    #expect(run.output.contains("Zigbee2MQTT: 1 device, 3 properties\n"))
    #expect(run.output.contains("settle run --config \(home.target)/settle.yaml\n"))
    #expect(run.output.contains("settle set kitchen/brightness 127 --wait\n"))
    let settings = try #require(home.file("settle.yaml"))
    #expect(settings.contains("  url: mqtt://127.0.0.1:\(broker.port)\n"))
    #expect(settings.contains("lanes:\n  zigbee:"))
    #expect(home.file("devices/imported-zigbee2mqtt.yaml")?.contains("lane: zigbee") == true)
    #expect(home.mode("mqtt.password") == nil)
    let check = try home.run([
      BuiltProgram.path("settled"), "check", "--config", home.target + "/settle.yaml",
    ])
    #expect(check.code == 0)
    #expect(check.output.hasPrefix("OK: 1 device, 3 properties"))
    #expect(settings.contains("\njournal: {path: journal.db}\n"))
    #expect(settings.contains("\nimport: auto "))
    let status = try home.run([
      BuiltProgram.path("settled"), "status", "--config", home.target + "/settle.yaml", "--json",
      "--socket", home.folder + "/none.sock",
    ])
    let path = #"{"name":"journal.path","value":"\#(home.target)/journal.db""#
    #expect(status.output.contains(path), "\(status.output)")
    // Only the message of the test itself, which nobody else has a topic for.
    let heard = client.messages.map(\.topic).filter { $0 != "zigbee2mqtt/bridge/devices" }
    #expect(heard.allSatisfy { $0.hasPrefix("settle/status/settle-init-") })
  }

  @Test func `without an announcement it says how to write a first device, and that works`() throws
  {
    let broker = try Self.broker()
    let home = try SetupHome()
    let run = try home.initialise(["--broker", "mqtt://127.0.0.1:\(broker.port)", "--yes"])
    #expect(run.code == 0)
    #expect(run.output.contains("note  devices      no device that can be set is announced\n"))
    #expect(run.output.contains("is a file such as \(home.target)/devices/lamp.yaml:\n"))
    #expect(run.output.contains("\nDevices that announce themselves later appear by themselves.\n"))
    let example = run.output.split(separator: "\n").filter { $0.hasPrefix("  ") }
      .drop { $0 != "  lamp:" }.prefix { $0 == "  lamp:" || $0.hasPrefix("    ") }
      .map { $0.dropFirst(2) + "\n" }.joined()
    try TextFile.write(example, to: home.target + "/devices/lamp.yaml")
    let check = try home.run([
      BuiltProgram.path("settled"), "check", "--config", home.target + "/settle.yaml",
    ])
    #expect(check.output.hasPrefix("OK: 1 device, "), Comment(rawValue: check.output))
  }

  @Test func `an existing file is never replaced`() throws {
    let broker = try Self.broker()
    for name in ["settle.yaml", "mqtt.password", "devices/imported-homie.yaml"] {
      let home = try SetupHome()
      for path in [home.target, home.target + "/devices"] {
        try #require(unsafe mkdir(path, 0o700) == 0)
      }
      try TextFile.write("mine", to: "\(home.target)/\(name)")
      let run = try home.initialise(["--broker", "127.0.0.1:\(broker.port)", "--yes"])
      #expect(run.code == 65)
      #expect(run.output.isEmpty)
      #expect(run.errors.contains("\(name) exists, and no file is replaced"))
      let other = ", or settle init --config DIR sets up another folder\n"
      #expect(run.errors.hasSuffix(other))
      #expect(run.errors.contains("; move it away") == (name != "settle.yaml"))
      #expect(home.file(name) == "mine")
    }
  }

  @Test func `a folder that cannot be written is named before anything is asked`() throws {
    let home = try SetupHome()
    try TextFile.write("", to: home.folder + "/file")
    for (folder, reason) in [("file", "is not a folder"), ("none/home", "no such file")] {
      let run = try home.initialise(["--yes"], into: "\(home.folder)/\(folder)")
      #expect(run.code == 1)
      #expect(run.errors.contains(reason), Comment(rawValue: run.errors))
    }
  }

  @Test func `a folder of device files that is none is named, and not as the broker's`() throws {
    let home = try SetupHome()
    try #require(unsafe mkdir(home.target, 0o700) == 0)
    try TextFile.write("", to: home.target + "/devices")
    let run = try home.initialise(["--yes"])
    #expect(run.code == 1)
    #expect(
      run.errors.contains("nothing can be written: \(home.target)/devices is not a folder; "),
      Comment(rawValue: run.errors)
    )
  }

  @Test func `help names every source that is read`() throws {
    let help = try SetupHome().run([BuiltProgram.path("settled"), "init", "--help"])
    for source in ["Zigbee2MQTT", "Home Assistant", "Homie 5", "Tasmota"] {
      #expect(help.output.contains(source), "\(source)")
    }
  }

  @Test func `a password moves to a file of its own, which the gateway reads`() throws {
    var options = TestBroker.Options()
    options.users = ["anna": "p@ss w%rd"]
    let broker = try Self.broker(options)
    let home = try SetupHome()
    let refused = try home.initialise(["--broker", "127.0.0.1:\(broker.port)", "--yes"])
    #expect(refused.code == 69)
    #expect(refused.errors.contains("not authorized (0x87); it may want a user name"))
    let wrong = try home.initialise(["--broker", "anna:x@127.0.0.1:\(broker.port)", "--yes"])
    #expect(wrong.code == 69)
    #expect(wrong.errors.contains("is the password of 'anna' right?"))
    #expect(!home.isWritten)
    let address = "mqtt://anna:p%40ss%20w%25rd@127.0.0.1:\(broker.port)"
    let run = try home.initialise(["--broker", address, "--yes"])
    #expect(run.code == 0, Comment(rawValue: run.errors))
    #expect(run.output.contains("ok    credentials  accepted for 'anna'\n"))
    #expect(!run.output.contains("w%rd") && !run.errors.contains("w%rd"))
    #expect(home.file("mqtt.password") == "p@ss w%rd\n")
    #expect(home.mode("mqtt.password") == 0o600)
    let settings = try #require(home.file("settle.yaml"))
    #expect(settings.contains("username: anna\n"))
    #expect(settings.contains("password_file: mqtt.password\n"))
    // With these files the import, which reads the same settings, is accepted by the broker.
    let imported = try home.run([
      BuiltProgram.path("settled"), "import", "--config", home.target + "/settle.yaml",
    ])
    #expect(imported.errors.contains("nothing is announced"))
  }

  @Test func `user name and password may come from the environment`() throws {
    var options = TestBroker.Options()
    options.users = ["anna": "geheim"]
    let broker = try Self.broker(options)
    let home = try SetupHome()
    let run = try home.initialise(
      ["--yes"],
      variables: [
        "SETTLE_MQTT_URL=mqtt://127.0.0.1:\(broker.port)", "SETTLE_MQTT_USERNAME=anna",
        "SETTLE_MQTT_PASSWORD=geheim",
      ]
    )
    #expect(run.code == 0, Comment(rawValue: run.errors))
    #expect(home.file("mqtt.password") == "geheim\n")
  }

  @Test func `a user who may not use the base topic is told which topics to allow`() throws {
    var options = TestBroker.Options()
    options.lines = ["acl_file ACL"]
    let home = try SetupHome()
    let list = home.folder + "/acl"
    try TextFile.write("topic read $SYS/#\ntopic readwrite zigbee2mqtt/#\n", to: list)
    options.lines = ["acl_file \(list)"]
    let broker = try Self.broker(options)
    let run = try home.initialise(["--broker", "127.0.0.1:\(broker.port)", "--yes"])
    #expect(run.code == 69)
    #expect(run.output.contains("FAIL  permissions  may not publish below settle/: not authorized"))
    #expect(run.errors.contains("Allow reading and writing below settle/#"))
    #expect(!home.isWritten)
  }

  @Test func `a port that nobody serves, and one that speaks HTTP, are named`() throws {
    let home = try SetupHome()
    let web = try ScriptedBroker(
      ScriptedBroker.Script { _ in [.send(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)), .close] }
    )
    let run = try home.initialise(["--broker", "127.0.0.1:\(web.port)", "--yes"])
    #expect(run.code == 69)
    #expect(run.errors.contains("the other side speaks HTTP, not MQTT"))
    let broker = try Self.broker()
    broker.stop()
    let none = try home.initialise(["--broker", "127.0.0.1:\(broker.port)", "--yes"])
    #expect(none.code == 69)
    #expect(none.errors.contains("Connection refused"))
    #expect(!home.isWritten)
  }

  @Test func `TLS at a plain address, and no TLS at an address with TLS, are named`() throws {
    let authority = try TestAuthority()
    var options = TestBroker.Options()
    options.certificate = try authority.certificate(name: "localhost")
    let secure = try Self.broker(options)
    let home = try SetupHome()
    let plain = try home.initialise(["--broker", "mqtt://localhost:\(secure.port)", "--yes"])
    #expect(plain.code == 69)
    #expect(plain.errors.contains("this port speaks TLS; use mqtts://localhost:\(secure.port)"))

    let unknown = try home.initialise(["--broker", "mqtts://localhost:\(secure.port)", "--yes"])
    #expect(unknown.code == 69)
    #expect(unknown.errors.contains("issued by an authority that is not in the system's store"))

    let broker = try Self.broker()
    let address = "mqtts://localhost:\(broker.port)"
    let without = try home.initialise(["--broker", address, "--yes"])
    #expect(without.code == 69)
    #expect(without.errors.contains("use mqtt://localhost:\(broker.port)"))
    #expect(!home.isWritten)

    let run = try home.initialise([
      "--broker", "mqtts://localhost:\(secure.port)", "--ca", authority.file, "--yes",
    ])
    #expect(run.code == 0, Comment(rawValue: run.errors))
    #expect(run.output.contains("ok    tls          the broker's certificate is valid\n"))
    #expect(home.file("settle.yaml")?.contains("ca: \(authority.file)\n") == true)
  }

  @Test func `a broker that only speaks MQTT 3 gets settings for that`() throws {
    let broker = try ScriptedBroker(
      ScriptedBroker.Script { packet in
        if packet.isVersion5 { return [.send([0x20, 2, 0, 1]), .close] }
        guard let topic = packet.topic else { return packet.politeAnswer }
        // What is published comes back.
        let name = Array(topic.utf8)
        let echo = [0x30, UInt8(name.count + 2), 0, UInt8(name.count)] + name
        return packet.politeAnswer + [.send(echo)]
      }
    )
    let home = try SetupHome()
    let run = try home.initialise(["--broker", "127.0.0.1:\(broker.port)", "--yes"])
    #expect(run.code == 0, Comment(rawValue: run.errors))
    #expect(run.output.contains("MQTT 3.1.1; the broker does not speak MQTT 5"))
    #expect(home.file("settle.yaml")?.contains("  protocol: 3.1.1\n") == true)
  }

  @Test func `--json prints one object per line`() throws {
    let broker = try Self.broker()
    let client = try RecordingSubscriber(port: broker.port)
    try #require(client.publish("zigbee2mqtt/bridge/devices", Array(Self.lamp.utf8), retain: true))
    let home = try SetupHome()
    let run = try home.initialise(["--broker", "127.0.0.1:\(broker.port)", "--yes", "--json"])
    #expect(run.errors == "")
    let lines = try run.output.split(separator: "\n").map { try JSONParser.parse(String($0)) }
    #expect(
      lines.compactMap { $0["check"]?.string }.prefix(4) == [
        "connection", "protocol", "credentials", "permissions",
      ]
    )
    #expect(lines.allSatisfy { $0["check"] == nil || $0["ok"] == true })
    #expect(lines.contains { $0["devices"] == 1 && $0["written"] == true })
    #expect(lines.last?["next"] == .string("settle run --config \(home.target)/settle.yaml"))
  }

  @Test func `questions are asked at a terminal, and a wrong answer is asked again`() throws {
    var options = TestBroker.Options()
    options.users = ["anna": "geheim"]
    let broker = try Self.broker(options)
    let home = try SetupHome()
    let run = try home.initialise(
      typing: ["http://127.0.0.1", "127.0.0.1:\(broker.port)", "anna", "geheim", "y"]
    )
    #expect(run.code == 0, Comment(rawValue: run.output))
    #expect(run.output.contains("did you mean 'mqtt://127.0.0.1'?"))
    #expect(run.output.contains("Password (not shown): "))
    #expect(run.output.contains("Write these files? [Y/n] "))
    #expect(home.file("mqtt.password") == "geheim\n")

    let other = try SetupHome()
    let address = "anna:geheim@127.0.0.1:\(broker.port)"
    let no = try other.initialise(typing: ["n"], ["--broker", address])
    #expect(no.code == 1)
    #expect(!other.isWritten)
  }

  @Test(arguments: [
    ([], 64, "standard input is no terminal, so nobody can answer; --yes asks nothing"),
    (["--broker", "http://h", "--yes"], 64, "did you mean 'mqtt://h'?"),
    (["--broker", "mqtt://u:p@203.0.113.5", "--yes"], 64, "use mqtts://"),
    (["--timeout", "0"], 64, "--timeout must be more than 0"),
    (["--ca", "/none.pem", "--broker", "mqtts://127.0.0.1:1", "--yes"], 69, "/none.pem"),
    (["--ca", "/none.pem", "--broker", "mqtt://127.0.0.1:1", "--yes"], 64, "only mqtts://"),
  ])
  func `a wrong command line is explained`(arguments: [String], code: Int32, message: String) throws
  {
    let home = try SetupHome()
    let run = try home.initialise(arguments)
    #expect(run.code == code)
    #expect(run.errors.contains(message), Comment(rawValue: run.errors))
    #expect(!home.isWritten)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import FoundationEssentials
import Operations
import Testing

struct EnvironmentTests {
  private func gateway(
    _ settings: String,
    environment: [String: String] = [:],
    files: KeyValuePairs<String, String> = [:]
  ) throws -> (gateway: GatewayConfiguration?, problems: [String]) {
    let folder = try TemporaryFolder(files)
    try folder.write(Array(settings.utf8), to: "settle.yaml")
    try folder.write(Array(Loading.lamp.utf8), to: "devices/d.yaml")
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = folder.path + "/settle.yaml"
    switch Loading.load(
      overrides,
      environment: environment.mapValues { $0.replacing("FOLDER", with: folder.path) }
    )
    {
    case .loaded(let loaded):
      return (loaded.gateway, Loading.lines(loaded.warnings, in: folder))
    case .refused(let problems): return (nil, Loading.lines(problems, in: folder))
    }
  }

  @Test func `device files of the state folder are read after the others`() throws {
    let files: KeyValuePairs = ["state/devices/imported.yaml": "plug: {profile: none}\n"]
    let variables = ["STATE_DIRECTORY": "FOLDER/state:/elsewhere"]
    let (_, problems) = try gateway("ttl: 5s", environment: variables, files: files)
    #expect(problems.count == 1)
    #expect(problems.first?.hasPrefix("imported.yaml:1:17: ") == true, "\(problems)")

    let twice = "lamp: {properties: {x: {type: boolean, command: {topic: t, payload: $value}}}}\n"
    let again = try gateway(
      "ttl: 5s",
      environment: variables,
      files: ["state/devices/imported.yaml": twice]
    )
    #expect(again.problems.first?.hasPrefix("imported.yaml:1:1: ") == true, "\(again.problems)")
  }

  @Test func `a gateway's state folder that another program cannot read is a warning`() throws {
    let (outcome, _) = try Loading.run(devices: ["d.yaml": Loading.lamp]) {
      $0.stateDevices = "/nowhere/devices"
    }
    guard case .loaded(let loaded) = outcome else {
      Issue.record("It is a mistake.")
      return
    }
    #expect(loaded.warnings.map(\.description) == ["/nowhere/devices: the folder does not exist"])
  }

  @Test(arguments: [("FOLDER/none", true), ("FOLDER", false), ("", false)])
  func `a state folder without device files is no mistake, and the same folder is read once`(
    state: String,
    isOther: Bool
  ) throws {
    let found = try gateway("import: auto", environment: ["STATE_DIRECTORY": state])
    #expect(found.problems.isEmpty)
    #expect(found.gateway?.importing?.quiet == .seconds(5))
    #expect((found.gateway?.stateDevices != nil) == isOther)
  }

  @Test(arguments: [(true, "settle.yaml"), (false, "other.yaml")])
  func `a folder in place of the settings file is a mistake`(
    isNamed: Bool,
    file: String
  ) throws {
    let folder = try TemporaryFolder(["\(file)": "ttl: 5s"])
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = folder.path
    guard case .refused(let problems) = Loading.load(overrides) else {
      Issue.record("The folder was read.")
      return
    }
    let question = isNamed ? "; did you mean '\(folder.path)/settle.yaml'?" : ""
    #expect(
      problems.map(\.description) == [
        "\(folder.path): is a folder, not the settings file\(question)"
      ]
    )
  }

  @Test func `flags override the environment, which overrides the file`() throws {
    let folder = try TemporaryFolder([
      "settle.yaml": "socket: /file\ndevices: file", "env.yaml": "socket: /other",
      "file/d.yaml": Loading.lamp, "env/d.yaml": Loading.lamp, "flag/d.yaml": Loading.lamp,
    ])
    var overrides = ConfigurationLoader.Overrides()
    var environment = ["SETTLE_CONFIG": folder.path + "/settle.yaml"]
    func loaded() throws -> GatewayConfiguration {
      guard case .loaded(let loaded) = Loading.load(overrides, environment: environment) else {
        throw CancellationError()
      }
      return loaded.gateway
    }
    #expect(try loaded().socket == "/file")
    #expect(try loaded().devicesDirectory == folder.path + "/file")
    environment["SETTLE_SOCKET"] = "/environment"
    environment["SETTLE_DEVICES"] = folder.path + "/env"
    #expect(try loaded().socket == "/environment")
    #expect(try loaded().devicesDirectory == folder.path + "/env")
    overrides.socket = "/flag"
    overrides.devices = folder.path + "/flag"
    #expect(try loaded().socket == "/flag")
    #expect(try loaded().devicesDirectory == folder.path + "/flag")
  }

  @Test(arguments: ["mqtt://b,unix:/s", "mqtt://b unix:/s", "mqtt://b, unix:/s"])
  func `a broker has several addresses, in the file and in the variable`(list: String) throws {
    let text = "mqtt: {url: [mqtt://a, mqtts://a:1]}"
    let file = try #require(try gateway(text).gateway?.mqtt)
    #expect(file.endpoints == [.tcp(host: "a", port: 1883), .tls(host: "a", port: 1)])
    #expect(file.allowsOlderVersion)
    let variable = try gateway(text, environment: ["SETTLE_MQTT_URL": list])
    #expect(
      variable.gateway?.mqtt.endpoints == [.tcp(host: "b", port: 1883), .unix(path: "/s")]
    )
    let stated = try gateway("mqtt: {protocol: 5}")
    #expect(stated.gateway?.mqtt.allowsOlderVersion == false)
  }

  @Test(arguments: ["[]", "[mqtt://a, ftp://a]", "[mqtt://a, {b: c}]"])
  func `a list of addresses has one at least, and only addresses`(list: String) throws {
    #expect(try gateway("mqtt: {url: \(list)}").gateway == nil)
  }

  @Test func `variables override the broker, the base topic and more`() throws {
    let gateway = try #require(
      try gateway(
        "mqtt: {url: mqtt://10.0.0.1, username: a}",
        environment: [
          "SETTLE_MQTT_URL": "mqtts://example.org:1234", "SETTLE_MQTT_USERNAME": "b",
          "SETTLE_MQTT_CLIENT_ID": "me", "SETTLE_MQTT_BASE_TOPIC": "home/settle",
          "SETTLE_HTTP_LISTEN": "127.0.0.1:1,unix:/s", "SETTLE_JOURNAL": "/j",
        ]
      ).gateway
    )
    #expect(gateway.mqtt.endpoint == .tls(host: "example.org", port: 1234))
    #expect(gateway.mqtt.username == "b")
    #expect(gateway.mqtt.clientID == "me")
    #expect(gateway.baseTopic == "home/settle")
    #expect(gateway.http?.listen == ["127.0.0.1:1", "unix:/s"])
    #expect(gateway.journal?.path == "/j")
  }

  @Test(arguments: [
    ("SETTLE_MQTT_URL", "nowhere", "$SETTLE_MQTT_URL: expected mqtt://HOST[:PORT], "),
    (
      "SETTLE_MQTT_BASE_TOPIC", "a/#",
      "$SETTLE_MQTT_BASE_TOPIC: the topic contains the wildcard"
    ),
    ("SETTLE_HTTP_LISTEN", "1.2.3.4:80", "$SETTLE_HTTP_LISTEN: listen: '1.2.3.4' is beyond"),
    ("SETTLE_HTTP_LISTEN", "nowhere", "$SETTLE_HTTP_LISTEN: the port is missing"),
    ("SETTLE_DEVICES", "/does/not/exist", "$SETTLE_DEVICES: the folder of device files"),
  ])
  func `a mistake in a variable names the variable`(
    name: String,
    value: String,
    beginning: String
  ) throws {
    let problems = try gateway("", environment: [name: value]).problems
    #expect(problems.count == 1)
    #expect(problems.first?.hasPrefix(beginning) == true, "\(problems)")
  }

  @Test(arguments: [
    ("SETTLE_SOKET", "; did you mean 'SETTLE_SOCKET'?"),
    ("SETTLE_MQTT_USER", "; did you mean 'SETTLE_MQTT_URL'?"),
    ("settle_config", "; did you mean 'SETTLE_CONFIG'?"), ("SETTLE_COLOR_OF_THE_SKY", ""),
  ])
  func `an unknown SETTLE variable is reported as a warning`(
    name: String,
    hint: String
  ) throws {
    let loaded = try gateway("", environment: [name: "hunter2", "SETTLEMENT": "1"])
    #expect(loaded.gateway != nil)
    let line = try #require(loaded.problems.first)
    #expect(loaded.problems.count == 1)
    #expect(
      line.hasPrefix("$\(name): unknown variable, ignored; known: SETTLE_CONFIG, "),
      "\(line)"
    )
    #expect(line.hasSuffix("SETTLE_JOURNAL" + hint), "\(line)")
    #expect(!line.contains("hunter2"))
  }

  @Test func `known and empty variables cause no warning`() throws {
    let environment = ["SETTLE_SOCKET": "/s", "SETTLE_SOKET": "", "PATH": "/bin"]
    #expect(try gateway("", environment: environment).problems == [])
  }

  @Test(arguments: [
    ("password_file: secret", [:], "from file"),
    ("password_file: secret", ["SETTLE_MQTT_PASSWORD": "from variable"], "from variable"),
    ("password_file: secret", ["CREDENTIALS_DIRECTORY": "FOLDER/c"], "from file"),
    ("protocol: 5", ["CREDENTIALS_DIRECTORY": "FOLDER/c"], "from credential"),
    ("protocol: 5", ["CREDENTIALS_DIRECTORY": "FOLDER/none"], nil),
  ])
  func `the password is read from the variable, the file or the credential`(
    field: String,
    environment: [String: String],
    password: String?
  ) throws {
    let loaded = try gateway(
      "mqtt: {username: u, \(field)}",
      environment: environment,
      files: ["secret": "from file\n", "c/mqtt.password": "from credential\r\n"]
    )
    let gateway = try #require(loaded.gateway, "\(loaded.problems)")
    #expect(gateway.mqtt.password == password)
  }

  @Test(arguments: [
    ("127.0.0.1", 0, true), ("localhost", 0, true), ("[::1]", 0, true),
    ("192.168.1.2", 1, true), ("10.1.1.1", 1, true), ("172.20.0.1", 1, true),
    ("broker.local", 1, true), ("mosquitto", 1, true), ("[fd00::1]", 1, true),
    ("8.8.8.8", 1, false), ("172.32.0.1", 1, false), ("example.org", 1, false),
    ("[2001:db8::1]", 1, false),
  ])
  func `a plaintext password is an error for public hosts and a warning for private ones`(
    host: String,
    lines: Int,
    isTaken: Bool
  ) throws {
    let environment = ["SETTLE_MQTT_PASSWORD": "hunter2"]
    let loaded = try gateway("mqtt: {url: \"mqtt://\(host)\"}", environment: environment)
    #expect((loaded.gateway != nil) == isTaken)
    #expect(loaded.problems.count == lines)
    #expect(!loaded.problems.joined().contains("hunter2"))
    let allowed = try gateway(
      "mqtt: {url: \"mqtt://\(host)\", allow_plaintext: true}",
      environment: environment
    )
    #expect(allowed.gateway != nil)
    let protected = try gateway("mqtt: {url: \"mqtts://\(host)\"}", environment: environment)
    #expect(protected.problems == [])
  }

  @Test func `a password that others may read is refused`() throws {
    let folder = try TemporaryFolder([
      "settle.yaml": "mqtt: {password_file: secret}", "devices/d.yaml": Loading.lamp,
    ])
    try folder.write(Array("hunter2".utf8), to: "secret", mode: 0o644)
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = folder.path + "/settle.yaml"
    guard case .refused(let problems) = Loading.load(overrides) else {
      Issue.record("The password was taken.")
      return
    }
    #expect(problems.count == 1)
    #expect(problems.first?.message.contains("has mode 644, which lets others read") == true)
    #expect(problems.first?.message.contains("hunter2") == false)
  }

  @Test func `a secret behind a symbolic link is rejected`() throws {
    let folder = try TemporaryFolder([
      "real": "x", "settle.yaml": "mqtt: {password_file: link}", "devices/d.yaml": Loading.lamp,
    ])
    try FileManager.default.createSymbolicLink(
      atPath: folder.path + "/link",
      withDestinationPath: folder.path + "/real"
    )
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = folder.path + "/settle.yaml"
    guard case .refused(let problems) = Loading.load(overrides) else {
      Issue.record("The link was followed.")
      return
    }
    #expect(
      problems.map(\.message) == [
        "password_file: '\(folder.path)/link' is a symbolic link; give the file itself"
      ]
    )
  }
}

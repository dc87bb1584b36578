// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// `settle status` where everything is well, and in broken situations: each has its red line and
/// the right advice.
@Suite(.blocking) struct StatusScenarios {
  /// A run of `settle status`: its report, and its exit code.
  private struct Run {
    var report: StatusReport
    var code: Int32?

    func advice(_ subject: String) -> String? {
      report.problems.first { $0.subject == subject }?.advice
    }
  }

  private static func status(_ arguments: [String] = [], at socket: String) throws -> Run {
    let run = try SettleRun(["status", "--json"] + arguments, socketPath: socket)
    let code = run.waitForExit()
    let json = try JSONParser.parse(run.output)
    return Run(report: try #require(StatusReport(json), "\(run.output)\(run.errors)"), code: code)
  }

  /// Asks until a red line about `subject` is there, with a message that contains `text`.
  private static func await(_ subject: String, _ text: String = "", of bench: Bench) throws {
    let client = try bench.client()
    var wait = Wait()
    var found: StatusReport?
    while wait.remaining() != nil {
      found = try client.ask(#"{"status":true}"#)["status"].flatMap(StatusReport.init)
      if found?.problems.contains(where: { $0.subject == subject && $0.message.contains(text) })
        ?? false
      {
        return
      }
    }
    Issue.record("no red line about \(subject): \(found?.problems ?? [])")
  }

  /// Starts a gateway with another broker address, waits for the red line, and asks for the advice.
  private static func advice(
    broker url: String,
    expecting text: String,
    environment: [String: String] = [:],
    mqtt: String = ""
  ) throws -> String {
    let bench = try Bench(devices: DeviceText.lamp(), mqtt: mqtt)
    var variables = environment
    variables["SETTLE_MQTT_URL"] = url
    try bench.launchGateway(environment: variables)
    try Self.await("broker mqtt", text, of: bench)
    let run = try status(at: bench.socketPath)
    #expect(run.code == 1)
    #expect(run.report.setting("mqtt.url")?.origin == "SETTLE_MQTT_URL")
    return run.advice("broker mqtt") ?? ""
  }

  // MARK: - Well

  @Test func `a gateway that is well says so, with its settings and where they come from`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp(), settings: "ttl: 30s")
    let run = try Self.status(at: bench.socketPath)

    #expect(run.code == 0)
    #expect(run.report.problems == [])
    #expect(run.report.isRunning)
    #expect(run.report.version == Release.description)
    #expect(run.report.brokers.map(\.isConnected) == [true])
    #expect(run.report.devices.count == 1)
    #expect(run.report.queue?.pending == 0)
    let file = "\(bench.folder)/settle.yaml"
    #expect(run.report.setting("mqtt.url")?.origin == "\(file):1")
    #expect(run.report.setting("ttl") == .init(name: "ttl", value: "30s", origin: "\(file):4"))
    #expect(run.report.setting("mqtt.keepalive")?.origin == "default")
    #expect(run.report.setting("socket")?.value == bench.socketPath)
    #expect(run.report.files == GatewayFiles(settings: file, devices: "\(bench.folder)/devices"))
    // Without `import:` there is nothing to say of it.
    let status = try bench.client().ask(#"{"status":true}"#)["status"]
    #expect(status?.members?.contains { $0.name == "import" } == false)
  }

  @Test func `a reload says which files were read`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let run = try SettleRun(["reload"], socketPath: bench.socketPath)
    #expect(run.waitForExit() == 0)
    let files = "\(bench.folder)/settle.yaml and \(bench.folder)/devices"
    #expect(run.errors == "The gateway has read \(files).\n")
  }

  @Test func `a reload shows new settings, and which need a restart`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let file = "\(bench.folder)/settle.yaml"
    let text = try #require(TextFile.read(file))
    try TextFile.write(text + "\nttl: 45s\nlimits: {pending: 7}\n", to: file)

    _ = try bench.client().ask(#"{"reload":true}"#)

    let run = try Self.status(at: bench.socketPath)
    #expect(run.code == 1)
    #expect(run.report.restart == ["limits"])
    #expect(run.report.setting("ttl")?.value == "45s")
    #expect(run.report.setting("limits.pending")?.value == "100000")
    #expect(run.advice("configuration")?.contains("Restart the gateway") == true)
  }

  // MARK: - Brokers

  @Test func `no broker`() throws {
    let bench = try Bench(devices: DeviceText.lamp())
    try bench.launchGateway()
    try Self.await("broker mqtt", "refused", of: bench)
    let run = try Self.status(at: bench.socketPath)
    #expect(run.code == 1)
    #expect(run.report.brokers.first?.trouble == "unreachable")
    #expect(run.advice("broker mqtt")?.contains("Start the broker there") == true)
    #expect(run.advice("broker mqtt")?.contains("settle.yaml:1)") == true)
  }

  @Test func `wrong password`() throws {
    var options = TestBroker.Options()
    options.users = ["settle": "right"]
    let broker = try TestBroker(options: options)
    try broker.start()
    defer { broker.stop() }
    let advice = try Self.advice(
      broker: "mqtt://127.0.0.1:\(broker.port)",
      expecting: "not authorized",
      environment: ["SETTLE_MQTT_PASSWORD": "wrong"],
      mqtt: ", username: settle"
    )
    #expect(advice.contains(#""mqtt.username""#) && advice.contains("password_file"), "\(advice)")
  }

  @Test func `a certificate for another name`() throws {
    let authority = try TestAuthority()
    var options = TestBroker.Options()
    options.certificate = try authority.certificate(name: "elsewhere")
    let broker = try TestBroker(options: options)
    try broker.start()
    defer { broker.stop() }
    let bench = try Bench(devices: DeviceText.lamp())
    let settings = """
      mqtt: {url: "mqtts://127.0.0.1:\(broker.port)", ca: \(authority.file)}
      socket: \(bench.socketPath)
      devices: devices
      """
    try TextFile.write(settings, to: bench.folder + "/settle.yaml")
    try bench.launchGateway()
    try Self.await("broker mqtt", "another name", of: bench)
    let run = try Self.status(at: bench.socketPath)
    #expect(run.report.brokers.first?.trouble == "certificate_name")
    #expect(run.advice("broker mqtt")?.contains("the name that the broker's certificate") == true)
  }

  @Test func `a peer that is no broker`() throws {
    let peer = try ScriptedBroker(.init { _ in [.send(Array("HTTP/1.1 400 Bad\r\n\r\n".utf8))] })
    let advice = try Self.advice(broker: "mqtt://127.0.0.1:\(peer.port)", expecting: "HTTP")
    #expect(advice.contains("brokers use 1883"), "\(advice)")
  }

  @Test func `a second gateway at the same base topic`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let second = try GatewayProcess(
      configuration: bench.folder + "/settle.yaml",
      socketPath: bench.folder + "/t.sock",
      arguments: ["--socket", bench.folder + "/t.sock"],
      environment: ["SETTLE_MQTT_CLIENT_ID": "second"]
    )
    try second.awaitSocket()
    try Self.await("second gateway", of: bench)

    let run = try Self.status(at: bench.socketPath)
    #expect(run.code == 1)
    #expect(run.advice("second gateway")?.contains(#""mqtt.base_topic""#) == true)
    let other = try Self.status(at: second.socketPath)
    #expect(other.advice("second gateway") != nil)

    // The one that is left puts its status back, and is well again.
    second.signal(SIGTERM)
    #expect(second.waitForExit() == 0)
    #expect(try bench.running().waitForLine(containing: "is online again") != nil)
    #expect(try Self.status(at: bench.socketPath).code == 0)
  }

  // MARK: - Devices and values

  @Test func `a device that is away`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    try bench.witness().publish("zigbee2mqtt/desk_lamp/availability", #"{"state":"offline"}"#)
    try Self.await("device", "desk-lamp", of: bench)
    let run = try Self.status(at: bench.socketPath)
    #expect(run.code == 1)
    #expect(run.report.devices.away.map(\.id) == ["desk-lamp"])
    #expect(run.advice("device")?.contains("Check power, network and bridge") == true)
  }

  @Test func `a lane that is full`() throws {
    let bench = try Bench.running(
      devices: Self.lane(30),
      settings: "lanes: {mesh: {rate: 1/s, burst: 1}}"
    )
    let client = try bench.client()
    for number in 0..<30 {
      _ = try client.ask(#"{"key":"dev\#(number)/level","set":5,"now":true}"#)
    }
    try Self.await("lane mesh", of: bench)
    let run = try Self.status(at: bench.socketPath)
    #expect(run.code == 1)
    #expect(run.advice("lane mesh")?.contains(#"Raise "lanes.mesh""#) == true)
    #expect(run.report.queue?.lanes.map(\.name) == ["mesh"])
  }

  private static func lane(_ count: Int) -> String {
    (0..<count).map {
      """
      dev\($0):
        lane: mesh
        properties:
          level: {type: number, range: [0, 100], command: {topic: cmd/dev\($0), payload: $value}}

      """
    }.joined()
  }

  @Test func `no devices`() throws {
    let bench = try Bench.running(devices: "{}\n")
    let run = try Self.status(at: bench.socketPath)
    #expect(run.code == 1)
    let command = "\"settle import --config \(bench.folder)/settle.yaml\""
    #expect(run.advice("devices")?.contains(command) == true)
    let devices = try SettleRun(["devices"], socketPath: bench.socketPath)
    #expect(devices.waitForExit() == 0)
    #expect(
      devices.errors == "settle: there are none yet; \"settle status\" says how to add them\n"
    )
  }

  @Test(.enabled(if: SmallDisk.isPossible, "only root can mount a file system"))
  func `a journal whose disk is full`() throws {
    let disk = try SmallDisk(bytes: 3 << 20)
    disk.fill()
    let bench = try Bench.running(
      devices: DeviceText.lamp(),
      settings: "journal: {path: \(disk.path)/journal.db}"
    )
    _ = try bench.client().ask(#"{"key":"desk-lamp/brightness","set":3}"#)
    try Self.await("journal", of: bench)
    let run = try Self.status(at: bench.socketPath)
    #expect(run.code == 1)
    #expect(run.report.journal?.isFull == true)
    #expect(run.advice("journal")?.hasPrefix("Free space on the file system of") == true)
    _ = disk
  }

  // MARK: - No gateway

  @Test func `the wrong socket, while a gateway runs at the one in the settings`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let run = try Self.status(
      ["--config", bench.folder + "/settle.yaml"],
      at: bench.folder + "/wrong.sock"
    )
    #expect(run.code == 69)
    #expect(run.report.otherSockets == [bench.socketPath])
    #expect(run.advice("gateway")?.contains("--socket \(bench.socketPath)") == true)
  }

  @Test func `no gateway: what it would use, and that the broker answers`() throws {
    let bench = try Bench(devices: DeviceText.lamp())
    try bench.broker.start()
    let run = try Self.status(
      ["--config", bench.folder + "/settle.yaml"],
      at: bench.socketPath
    )
    #expect(run.code == 69)
    #expect(!run.report.isRunning)
    #expect(run.report.devices.count == 1)
    #expect(run.report.brokers.map(\.isConnected) == [true])
    #expect(run.report.setting("mqtt.url")?.origin == "\(bench.folder)/settle.yaml:1")
    #expect(run.report.problems.map(\.subject) == ["gateway"])
    let command = "\"settle run --config \(bench.folder)/settle.yaml\""
    #expect(run.advice("gateway")?.contains(command) == true)
  }

  @Test func `no gateway, because its files have mistakes`() throws {
    let bench = try Bench(devices: "lamp: {properties: {level: {type: nubmer}}}\n")
    try bench.broker.start()
    let run = try Self.status(
      ["--config", bench.folder + "/settle.yaml"],
      at: bench.socketPath
    )
    #expect(run.code == 69)
    #expect(run.report.mistakes.first?.contains("devices.yaml:1:") == true)
    let command = "\"settle check --config \(bench.folder)/settle.yaml\""
    #expect(run.advice("configuration")?.contains(command) == true)
    #expect(run.advice("gateway")?.contains("Correct the mistakes") == true)
  }

  @Test func `a gateway that is stopped`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    try bench.running().signal(SIGSTOP)
    defer { try? bench.running().signal(SIGCONT) }
    let run = try Self.status(
      ["--config", bench.folder + "/settle.yaml"],
      at: bench.socketPath
    )
    #expect(run.code == 69)
    #expect(run.report.problems.first?.message.contains("does not answer") == true)
  }

  // MARK: - Text

  @Test func `the text names the red line and then what to do`() throws {
    let bench = try Bench.running(devices: "{}\n")
    let run = try SettleRun(["status"], socketPath: bench.socketPath)
    #expect(run.waitForExit() == 1)
    let lines = run.output.split(separator: "\n")
    let place = try #require(lines.firstIndex { $0.hasPrefix("! devices: there are none") })
    #expect(lines[place...].contains { $0.hasPrefix(#"  -> "settle import --config "#) })
    #expect(lines.contains { $0.hasPrefix("mqtt.url") && $0.hasSuffix("settle.yaml:1") })
  }
}

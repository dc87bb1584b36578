// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import JSON
import Testing

/// What `settle status` calls a red line, and what it advises.
@Suite struct StatusAdviceTests {
  /// A gateway that is well.
  private static func well() -> StatusReport {
    var report = StatusReport(version: "1.0.0", isRunning: true)
    report.settings = [
      .init(name: "mqtt.url", value: "mqtt://broker:1883", origin: "/etc/settle/settle.yaml:2"),
      .init(name: "mqtt.username", value: "none", origin: "default"),
      .init(name: "mqtt.base_topic", value: "settle", origin: "default"),
      .init(name: "lanes.zigbee", value: "rate 2/s", origin: "/etc/settle/settle.yaml:9"),
      .init(name: "devices", value: "/etc/settle/devices", origin: "default"),
    ]
    var broker = StatusReport.Broker(name: "mqtt", url: "mqtt://broker:1883", state: .connected)
    broker.sinceMilliseconds = 60_000
    report.brokers = [broker]
    report.devices.count = 2
    report.devices.keys = 5
    report.queue = StatusReport.Queue(limit: 100)
    report.queue?.lanes = [.init(name: "zigbee", rate: 2)]
    report.journal = StatusReport.Journal(path: "/var/lib/settle/journal.db")
    return report
  }

  @Test func `a gateway that is well has no red line`() {
    #expect(StatusAdvice.problems(in: Self.well()) == [])
  }

  @Test func `partitions that a member cannot read are named`() throws {
    var report = Self.well()
    var cluster = StatusReport.Cluster(name: "campus", member: "a")
    cluster.owners = ["a", "a"]
    var member = StatusReport.Member()
    member.name = "b"
    member.state = "ready"
    member.renewedMilliseconds = 10
    member.unreadable = Array(0..<10)
    cluster.members = [member]
    report.cluster = cluster
    let problem = try #require(StatusAdvice.problems(in: report).first)
    #expect(problem.message.contains("b cannot read what is stored of partitions 0, 1, 2"))
    #expect(problem.message.contains("7 and 2 more"))
    #expect(StatusReport(report.json)?.cluster == cluster)
    let lines = StatusText.lines(of: report, width: 200).map(\.text)
    #expect(lines.contains { $0.contains("b: ready") && $0.contains("cannot read partitions 0") })
  }

  @Test func `an engine that a loss of power empties is red, one of which nothing is known is not`()
    throws
  {
    var report = Self.well()
    var cluster = StatusReport.Cluster(name: "campus", member: "a")
    cluster.engine.writesReason = "cluster.monitor is not set"
    report.cluster = cluster
    #expect(StatusAdvice.problems(in: report) == [])
    var lines = StatusText.lines(of: report, width: 200).map(\.text)
    let unknown = "before they acknowledge: cluster.monitor is not set"
    #expect(lines.contains { $0.hasSuffix(unknown) })
    cluster.engine.writesFirst = true
    report.cluster = cluster
    lines = StatusText.lines(of: report, width: 200).map(\.text)
    #expect(lines.contains { $0.hasSuffix("write to their disks before they acknowledge") })
    cluster.engine.writesFirst = false
    cluster.engine.writesReason = "http://n1:8222: late"
    report.cluster = cluster
    let problem = try #require(StatusAdvice.problems(in: report).first)
    #expect(problem.message == "a loss of power may lose accepted values: http://n1:8222: late")
    #expect(problem.advice.contains("sync_interval: always"))
    #expect(StatusReport(report.json)?.cluster == cluster)
  }

  @Test func `another cluster of the same name is red, and read back`() throws {
    var report = Self.well()
    var cluster = StatusReport.Cluster(name: "campus", member: "a")
    cluster.isContested = true
    report.cluster = cluster
    let problem = try #require(StatusAdvice.problems(in: report).first)
    #expect(problem.message == "its sessions at the broker end as soon as they are made")
    #expect(problem.advice.contains("has the same name"))
    #expect(StatusReport(report.json)?.cluster == cluster)
  }

  @Test func `a topic for which the broker drops the connection is red, and read back`() throws {
    var report = Self.well()
    report.brokers[0].quarantined = [
      .init(topic: "cmd/lamp", milliseconds: 40_000), .init(topic: "cmd/fan", milliseconds: 9000),
    ]
    let problem = try #require(StatusAdvice.problems(in: report).first)
    #expect(problem.subject == "broker mqtt")
    #expect(
      problem.message.contains("what was sent to cmd/lamp (and 1 more): not sent again for 40s")
    )
    #expect(problem.advice.contains("Another value is tried"))
    #expect(StatusReport(report.json)?.brokers == report.brokers)
    let lines = StatusText.lines(of: report, width: 200).map(\.text)
    #expect(lines.contains { $0.contains("2 topics quarantined") })
  }

  @Test func `an import says what it added and refused, and what stands in its way`() throws {
    var report = Self.well()
    var imports = StatusReport.Import()
    imports.devices = 12
    imports.added = ["a", "b", "c", "d", "e", "f"]
    (imports.addedCount, imports.addedAt, imports.ageMilliseconds) = (9, 1_764_200_000_000, 61_000)
    imports.refused = [
      .init(subject: "Bridge: permit_join", reason: "its commands control a bridge")
    ]
    imports.refusedCount = 1
    (imports.gone, imports.goneCount) = (["fan", "plug"], 2)
    report.imports = imports
    #expect(StatusAdvice.problems(in: report).isEmpty)
    #expect(StatusReport(report.json)?.imports == imports)
    let lines = StatusText.lines(of: report, width: 200).map(\.text)
    #expect(
      lines.contains("import    12 devices, newest a, b, c, d, e and 4 more, looked 61s ago"),
      "\(lines)"
    )
    #expect(
      lines.contains("          refused: Bridge: permit_join: its commands control a bridge")
    )
    #expect(
      lines.contains(
        "          no longer announced: fan, plug; remove them from the files if they are gone"
      )
    )

    report.imports?.unused = "lamp.yaml has changed since the gateway read it"
    report.imports?.failure = "devices cannot be written"
    let problems = StatusAdvice.problems(in: report)
    #expect(problems.map(\.subject) == ["import", "import"])
    #expect(problems[0].message == "nothing is imported: devices cannot be written")
    #expect(problems[1].advice.contains(#""settle reload" reads the files"#))
  }

  @Test func `a gateway without devices that follows announcements waits for them`() {
    var report = Self.well()
    report.devices = StatusReport.Devices()
    report.imports = StatusReport.Import()
    let problems = StatusAdvice.problems(in: report)
    #expect(problems.map(\.subject) == ["devices"])
    #expect(problems.first?.advice.contains("Devices appear once") == true)
  }

  @Test(arguments: [
    ("unreachable", "Start the broker there, open its port to this machine, or correct"),
    ("unresolved", "Correct the host's name"),
    ("credentials", #"Set "mqtt.username" (not set) and "mqtt.password_file""#),
    ("version", #"Set "mqtt.protocol""#),
    ("closed", "8883 with TLS (mqtts://)"),
    ("client_id", #"Choose another "mqtt.client_id""#),
    ("taken_over", "End the other client"),
    ("certificate_name", "the name that the broker's certificate has"),
    ("certificate", #"Set "mqtt.ca""#),
    ("not_mqtt", "brokers use 1883"),
    ("silent", "no firewall drops packets"),
    ("refused", "See the broker's log"),
    ("dropped", "connects again by itself"),
  ])
  func `a broker that is away is red, with advice for its trouble`(
    trouble: String,
    advice: String
  ) {
    var report = Self.well()
    report.brokers[0].state = .waiting
    report.brokers[0].trouble = trouble
    report.brokers[0].reason = "no luck"

    let problems = StatusAdvice.problems(in: report)

    #expect(problems.map(\.subject) == ["broker mqtt"])
    #expect(problems[0].message == "mqtt://broker:1883: not connected for 60s: no luck")
    #expect(problems[0].advice.contains(advice), "\(problems[0].advice)")
  }

  @Test func `advice names the file and line of the setting`() {
    var report = Self.well()
    report.brokers[0].state = .waiting
    report.brokers[0].trouble = "unreachable"
    let advice = StatusAdvice.problems(in: report).first?.advice
    #expect(advice?.contains(#""mqtt.url" (/etc/settle/settle.yaml:2)"#) == true, "\(advice ?? "")")
  }

  @Test(arguments: [(19, 0), (20, 1)])
  func `a lane is full once its last command waits ten seconds`(waiting: Int, count: Int) {
    var report = Self.well()
    report.queue?.lanes[0].waiting = waiting
    let problems = StatusAdvice.problems(in: report)
    #expect(problems.count == count)
    #expect(problems.allSatisfy { $0.subject == "lane zigbee" })
    let place = #""lanes.zigbee" (/etc/settle/settle.yaml:9)"#
    #expect(problems.allSatisfy { $0.advice.contains(place) })
  }

  @Test func `a lane that waits for an absent broker is not full`() {
    var report = Self.well()
    report.queue?.lanes[0].waiting = 50
    report.brokers[0].state = .waiting
    #expect(StatusAdvice.problems(in: report).map(\.subject) == ["broker mqtt"])
  }

  @Test func `a queue that is nearly full is red before it refuses changes`() {
    var report = Self.well()
    report.queue?.quiet = 90
    #expect(StatusAdvice.problems(in: report).map(\.subject) == ["queue"])
  }

  @Test func `a full disk and a read-only one need different things`() {
    var report = Self.well()
    report.journal?.fault = "the disk is full"
    report.journal?.isFull = true
    #expect(StatusAdvice.problems(in: report)[0].advice.hasPrefix("Free space"))
    report.journal?.isFull = false
    #expect(StatusAdvice.problems(in: report)[0].advice.hasPrefix("Make /var/lib/settle"))
  }

  @Test func `many devices that are offline are one line with the first names`() {
    var report = Self.well()
    report.devices.awayCount = 5
    report.devices.away = ["a", "b", "c", "d", "e"].map { .init(id: $0, sinceMilliseconds: nil) }
    let problem = StatusAdvice.problems(in: report).first
    #expect(problem?.message == "offline: a, b, c and 2 more")
  }

  @Test func `a property that was missed is named with its topic, one that is unheard is not`() {
    var report = Self.well()
    report.devices.unheardCount = 1
    #expect(StatusAdvice.problems(in: report) == [])
    let lines = StatusText.lines(of: report, width: 80).map(\.text)
    #expect(lines.contains("devices   2 with 5 properties, 1 unheard"))

    report.devices.unheard = [.init(key: "lamp/power", topic: "z2m/lmp", pointer: "/state")]
    let problem = StatusAdvice.problems(in: report).first
    #expect(problem?.subject == "reports")
    #expect(
      problem?.message
        == "lamp/power has not been reported since the start: no message on z2m/lmp with /state"
    )
    #expect(problem?.advice.contains(#""settle describe lamp/power""#) == true)
    report.devices.unheard += [
      .init(key: "fan/power", topic: "fan", pointer: ""),
      .init(key: "fan/speed", topic: "fan", pointer: ""),
    ]
    #expect(
      StatusAdvice.problems(in: report).first?.message.hasSuffix(" (and 2 more properties)") == true
    )
  }

  @Test func `a property whose newest report cannot be read is named with it`() {
    var report = Self.well()
    report.devices.unreadable = [
      .init(key: "lamp/level", reports: UnreadableRow(count: 3, last: "'abc'")),
      .init(key: "lamp/power", reports: UnreadableRow(count: 1, last: "an object")),
    ]
    #expect(
      StatusAdvice.problems(in: report).map(\.message) == [
        "lamp/level is reported in a way that cannot be read: 'abc' (and 1 more property)"
      ]
    )
  }

  @Test func `no devices is red, unless the gateway has routes`() {
    var report = Self.well()
    report.devices.count = 0
    #expect(StatusAdvice.problems(in: report)[0].advice.contains("settle import"))
    report.settings.append(.init(name: "routes", value: "1", origin: "x:1"))
    #expect(StatusAdvice.problems(in: report).isEmpty)
  }

  @Test func `a second gateway and a restart that is due are red`() {
    var report = Self.well()
    report.otherGatewayMilliseconds = 5000
    report.restart = ["mqtt", "http"]
    let problems = StatusAdvice.problems(in: report)
    #expect(problems.map(\.subject) == ["second gateway", "configuration"])
    #expect(problems[0].message.contains("base topic settle 5s ago"))
    #expect(problems[1].message.hasSuffix("mqtt, http"))
  }

  @Test func `without a gateway another socket is named if one answers there`() {
    var report = Self.well()
    report.isRunning = false
    report.socketFailure = "no gateway answers at /tmp/x"
    #expect(StatusAdvice.problems(in: report)[0].advice.contains(#"Start it with "settle run""#))
    report.otherSockets = ["/run/settle/settle.sock"]
    #expect(
      StatusAdvice.problems(in: report)[0].advice.contains("--socket /run/settle/settle.sock")
    )
  }

  @Test func `without a gateway and settings it is said how to name them, and nothing else is red`()
  {
    var report = Self.well()
    report.isRunning = false
    report.socketFailure = "no gateway is running"
    report.files = GatewayFiles(settings: nil, devices: "devices")
    report.settings[0].origin = "default"
    report.brokers[0].state = .waiting
    report.devices.count = 0

    let problems = StatusAdvice.problems(in: report)

    #expect(problems.map(\.subject) == ["gateway"])
    let advice = "No settings file was found (looked at /etc/settle/settle.yaml); name yours with"
    #expect(
      problems[0].advice.hasPrefix("\(advice) --config FILE or SETTLE_CONFIG. Start it with "),
      "\(problems[0].advice)"
    )
    // A broker that somebody has named is tested.
    report.settings[0].origin = "SETTLE_MQTT_URL"
    #expect(
      StatusAdvice.problems(in: report).map(\.subject) == ["gateway", "broker mqtt"]
    )
    report.files?.settings = "/home/settle.yaml"
    #expect(
      StatusAdvice.problems(in: report).map(\.subject) == ["gateway", "broker mqtt", "devices"]
    )
    #expect(StatusAdvice.problems(in: report)[0].advice.hasPrefix("Start it with "))
  }

  @Test func `a gateway of another version must be restarted`() {
    #expect(StatusAdvice.otherVersion(gateway: "1.0.0", program: "1.0.0") == nil)
    let problem = StatusAdvice.otherVersion(gateway: "1.0.0", program: "1.1.0")
    #expect(problem?.advice.hasPrefix("Restart the gateway") == true)
  }

  @Test func `a report survives the wire`() {
    var report = Self.well()
    report.runningMilliseconds = 1234
    report.brokers[0].trouble = "dropped"
    report.brokers[0].reason = "gone"
    report.http = StatusReport.HTTP(listen: ["127.0.0.1:8484"])
    report.counters = [.init("changes", 7)]
    report.devices.awayCount = 1
    report.devices.away = [.init(id: "lamp", sinceMilliseconds: 5)]
    report.devices.unheardCount = 2
    report.devices.unheard = [.init(key: "lamp/power", topic: "z2m/lmp", pointer: "/state")]
    report.devices.unreadable = [
      .init(key: "lamp/level", reports: UnreadableRow(count: 3, last: "'abc'"))
    ]
    report.problems = StatusAdvice.problems(in: report)
    #expect(StatusReport(report.json) == report)
    let line = ControlReply.status(report, id: "s").line
    #expect(ControlReply(line: line.span) == .status(report, id: "s"))
  }

  @Test func `lines fit the width, and each red line is followed by its advice`() {
    var report = Self.well()
    report.brokers[0].state = .waiting
    report.brokers[0].trouble = "credentials"
    report.brokers[0].reason = "the broker refused the connection: not authorized (0x87)"
    report.problems = StatusAdvice.problems(in: report)

    let lines = StatusText.lines(of: report, width: 60)

    #expect(lines.first?.text == "settle 1.0.0 runs and needs attention")
    let red = lines.drop { $0.tone != .bad || !$0.text.hasPrefix("!") }
    let advice = red.drop { $0.tone == .bad }
    #expect(advice.first?.text.hasPrefix("  -> Set ") == true)
    #expect(red.prefix { $0.tone != .plain }.allSatisfy { $0.text.count <= 60 })
    #expect(lines.contains { $0.text.hasPrefix("mqtt.url") && $0.text.hasSuffix("settle.yaml:2") })
    #expect(lines.contains { $0.tone == .faint && $0.text.hasPrefix("mqtt.base_topic") })
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

/// Decides which facts of a report are red lines, and what to do about each.
package struct StatusAdvice {
  private let report: StatusReport
  private var problems: [StatusReport.Problem] = []

  /// How long the last command of a lane may wait before the lane counts as full.
  package static let longestWait = 10.0
  /// How many commands may wait in a lane without a limit.
  package static let longestQueue = 1000

  /// The red lines of a report, the most urgent first.
  package static func problems(in report: StatusReport) -> [StatusReport.Problem] {
    var advice = StatusAdvice(report: report)
    advice.addGateway()
    advice.addConfiguration()
    for broker in report.brokers where !broker.isConnected && !advice.isUnstated(broker) {
      advice.add(broker)
    }
    for broker in report.brokers { advice.addQuarantined(broker) }
    advice.addOtherGateway()
    advice.addJournal()
    advice.addCluster()
    advice.addQueue()
    advice.addDevices()
    advice.addImport()
    advice.addReports()
    advice.addRestart()
    return advice.problems
  }

  /// The red line of a gateway that is older than the command `status`.
  package static func tooOld(socket: String, program version: String) -> StatusReport.Problem {
    .init(
      "gateway",
      "the gateway at \(socket) is older than this program (\(version)): it cannot say its status",
      advice: Self.restart
    )
  }

  /// The red line of a gateway of another version than the program that asks; `nil` for the same.
  package static func otherVersion(
    gateway: String,
    program: String
  ) -> StatusReport.Problem? {
    guard gateway != program else { return nil }
    return .init(
      "gateway",
      "the gateway is version \(gateway), this program is \(program)",
      advice: Self.restart
    )
  }

  private static let restart =
    #"Restart the gateway, so that it runs the installed version: "systemctl restart settled","#
    + #" or end it and start "settle run" again."#

  private mutating func add(_ subject: String, _ message: String, advice: String) {
    problems.append(.init(subject, message, advice: advice))
  }

  /// `"mqtt.url" (/etc/settle/settle.yaml:2)`.
  private func named(_ setting: String) -> String {
    let origin = report.setting(setting)?.origin
    let place = origin.map { $0 == "default" ? " (not set)" : " (\($0))" }
    return "\"\(setting)\"\(place ?? "")"
  }

  /// `"settle NAME"`, with the settings file of the report.
  private func command(_ name: String) -> String {
    "\"\(CommandAdvice.settle(name, settings: report.files?.settings))\""
  }

  private func value(_ setting: String) -> String { report.setting(setting)?.value ?? "" }

  private func age(_ milliseconds: Int?) -> String {
    milliseconds.map { " for \(AgeText.text($0))" } ?? ""
  }

  // MARK: - No gateway

  private mutating func addGateway() {
    guard let failure = report.socketFailure else { return }
    var advice: String
    if let other = report.otherSockets.first {
      advice = "A gateway answers at \(other): use --socket \(other), or set SETTLE_SOCKET to it."
    } else if !report.mistakes.isEmpty {
      advice = "Correct the mistakes below, then start it with \(command("run"))."
    } else {
      advice =
        "Start it with \(command("run")), or as a service with \"systemctl start settled\"; if it runs,"
        + " see its log for the path of its socket."
    }
    if isWithoutSettings, report.otherSockets.isEmpty {
      advice = "\(CommandAdvice.noSettings). \(advice)"
    }
    add("gateway", failure, advice: advice)
  }

  /// Whether there is neither a gateway nor a settings file: what is missing then is no fault.
  private var isWithoutSettings: Bool {
    guard report.socketFailure != nil, let files = report.files else { return false }
    return files.settings == nil
  }

  /// Whether nobody has named this broker.
  private func isUnstated(_ broker: StatusReport.Broker) -> Bool {
    isWithoutSettings && broker.name == "mqtt" && report.setting("mqtt.url")?.origin == "default"
  }

  private mutating func addConfiguration() {
    guard let first = report.mistakes.first else { return }
    let rest = report.mistakes.count - 1
    add(
      "configuration",
      first + (rest > 0 ? " (and \(rest) more)" : ""),
      advice: "Correct it; \(command("check")) lists every mistake."
    )
  }

  // MARK: - The cluster

  private mutating func addCluster() {
    guard let cluster = report.cluster else { return }
    if let problem = cluster.engine.problem {
      let isMember = cluster.members.contains { $0.name == cluster.member }
      let advice =
        isMember
        ? "New changes are held in memory only: look at the servers in \(named("cluster.nats")) and"
          + " their logs."
        : "This gateway drives nothing before it has joined: look at the servers and the credentials in"
          + " \(named("cluster.nats"))."
      add("engine", problem, advice: advice)
    }
    if cluster.engine.writesFirst == false {
      add(
        "engine",
        "a loss of power may lose accepted values: \(cluster.engine.writesReason ?? "")",
        advice: "Set sync_interval: always in the jetstream settings of every server of NATS, 2.10"
          + " or newer."
      )
    }
    if cluster.isContested {
      add(
        "cluster",
        "its sessions at the broker end as soon as they are made",
        advice: "Another cluster at this broker has the same name: give one of them another"
          + " \(named("cluster.name"))."
      )
    }
    if let own = cluster.members.first(where: { $0.name == cluster.member }), !own.hasSameDevices {
      add(
        "cluster",
        "\(own.name) has other device files than most members, and drives nothing",
        advice: #"Copy the same device files to every member, then run "settle reload" on each."#
      )
    }
    for member in cluster.members {
      guard let partitions = member.unreadableText else { continue }
      add(
        "cluster",
        "\(member.name) cannot read what is stored of \(partitions), and leaves them to other members",
        advice: "A newer version has written it: install that version on \(member.name) too."
      )
    }
    let free = cluster.owners.count { $0 == nil }
    guard free > 0, cluster.engine.problem == nil else { return }
    add(
      "cluster",
      "\(free) of \(cluster.owners.count) partitions have no owner: their devices are not driven",
      advice: "This lasts some seconds after a member has ended; otherwise see the members' logs."
    )
  }

  // MARK: - Brokers

  private mutating func add(_ broker: StatusReport.Broker) {
    let reason = broker.reason.map { ": \($0)" } ?? ""
    let state = broker.state == .connecting && broker.reason == nil ? "connecting" : "not connected"
    add(
      "broker \(broker.name)",
      "\(broker.url): \(state)\(age(broker.sinceMilliseconds))\(reason)",
      advice: advice(broker)
    )
  }

  private mutating func addQuarantined(_ broker: StatusReport.Broker) {
    guard let first = broker.quarantined.first else { return }
    let rest = broker.quarantined.count - 1
    add(
      "broker \(broker.name)",
      "it drops the connection for what was sent to \(first.topic)"
        + (rest > 0 ? " (and \(rest) more)" : "")
        + ": not sent again for \(AgeText.text(first.milliseconds))",
      advice:
        "See the broker's log for the reason: size, permission or a plug-in. Another value is tried"
        + " at once."
    )
  }

  private func advice(_ broker: StatusReport.Broker) -> String {
    let prefix = broker.name == "mqtt" ? "mqtt" : "brokers.\(broker.name)"
    let url = named("\(prefix).url")
    switch broker.trouble {
    case "unreachable":
      return "Start the broker there, open its port to this machine, or correct \(url)."
    case "unresolved": return "Correct the host's name in \(url), or this machine's name servers."
    case "credentials":
      let user = named("\(prefix).username")
      return "Set \(user) and \"\(prefix).password_file\" to what the broker knows."
    case "version": return "Set \(named("\(prefix).protocol")) to 3.1.1, or to 5 if it is that."
    case "client_id": return "Choose another \(named("\(prefix).client_id"))."
    case "taken_over":
      return "End the other client, or give one of them another"
        + " \(named("\(prefix).client_id")), now \(value("\(prefix).client_id"));"
        + #" a second gateway needs its own "mqtt.base_topic" too."#
    case "certificate_name":
      return "Write into \(url) the name that the broker's certificate has."
    case "certificate":
      return "Set \(named("\(prefix).ca")) to the authority that issued the broker's certificate,"
        + " or use mqtt:// where the broker has no TLS."
    case "not_mqtt", "closed":
      return "Correct the port in \(url): brokers use 1883, and 8883 with TLS (mqtts://)."
    case "silent":
      return "Check that the port in \(url) is a broker's, and that no firewall drops packets."
    case "refused": return "See the broker's log for the reason."
    case "dropped":
      return "The gateway connects again by itself; see the broker's log if it recurs."
    default: return "Ask again in a few seconds."
    }
  }

  private mutating func addOtherGateway() {
    guard let milliseconds = report.otherGatewayMilliseconds else { return }
    add(
      "second gateway",
      "another gateway was online at the base topic \(value("mqtt.base_topic"))"
        + " \(AgeText.text(milliseconds)) ago: both act on every command",
      advice: "End one of them, or give one another \(named("mqtt.base_topic"))."
    )
  }

  // MARK: - Values

  private mutating func addJournal() {
    guard let journal = report.journal, let fault = journal.fault else { return }
    let todo =
      journal.isFull
      ? "Free space on the file system of \(journal.path)."
      : "Make \(journal.path) and its folder writable, or correct \(named("journal.path"))."
    add(
      "journal",
      "\(journal.path): \(fault)",
      advice: todo + " Until then accepted values do not survive a crash."
    )
  }

  private mutating func addQueue() {
    guard let queue = report.queue else { return }
    for lane in queue.lanes { add(lane) }
    guard queue.pending >= queue.limit - queue.limit / 10 else { return }
    add(
      "queue",
      "\(queue.pending) keys have a pending value, \(queue.limit) may",
      advice: "Find out what changes so many keys, with \"settle watch\"; or raise"
        + " \(named("limits.pending"))."
    )
  }

  private mutating func add(_ lane: StatusReport.Lane) {
    // What waits for a broker that is away waits for nothing else.
    guard report.brokers.first?.isConnected ?? true else { return }
    if let rate = lane.rate {
      let wait = Double(lane.waiting) / rate
      guard wait >= Self.longestWait else { return }
      add(
        "lane \(lane.name)",
        "\(lane.waiting) commands wait: at its rate the last is sent in"
          + " \(AgeText.text(Int(wait * 1000)))",
        advice: "Raise \(named("lanes.\(lane.name)")), as far as the mesh allows, or change fewer"
          + " devices at once."
      )
    } else if let window = lane.window, let time = window.roundTripMilliseconds {
      let wait = Double(lane.waiting / max(window.size, 1) * time) / 1000
      guard wait >= Self.longestWait else { return }
      add(
        "lane \(lane.name)",
        "\(lane.waiting) commands wait: the mesh confirms \(window.size) in \(time) ms",
        advice: "Change fewer devices at once; if the bridge's log has errors, look at the mesh."
      )
    } else if lane.waiting >= Self.longestQueue {
      add(
        lane.name.isEmpty ? "queue" : "lane \(lane.name)",
        "\(lane.waiting) commands wait for the broker, which is slower than the changes",
        advice: #"Find out what changes so much, with "settle watch"; see the broker's load."#
      )
    }
  }

  // MARK: - Devices

  private mutating func addDevices() {
    let devices = report.devices
    if devices.count == 0, report.mistakes.isEmpty, report.setting("routes") == nil,
      !isWithoutSettings, report.imports == nil
    {
      add(
        "devices",
        "there are none: no file in \(value("devices")) describes one",
        advice: "\(command("import")) writes files for what the broker announces;"
          + #" then "settle reload"."#
      )
    }
    guard devices.awayCount > 0 else { return }
    let names = devices.away.prefix(3).map { "\($0.id)\(age($0.sinceMilliseconds))" }
    let rest = devices.awayCount - names.count
    let list = names.joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
    add(
      devices.awayCount == 1 ? "device" : "devices",
      "offline: \(list)",
      advice: "Check power, network and bridge."
        + #" Values for them wait for their "ttl", then expire."#
    )
  }

  private mutating func addImport() {
    guard let imports = report.imports else { return }
    if let failure = imports.failure {
      add(
        "import",
        "nothing is imported: \(failure)",
        advice: "Correct that, then \(command("import")) shows what is announced;"
          + #" "settle reload" lets the gateway try again."#
      )
    }
    if let reason = imports.unused {
      add(
        "import",
        "devices were imported, and are not in use: \(reason)",
        advice: "\(command("check")) lists every mistake; \"settle reload\" reads the files."
      )
    }
    if report.devices.count == 0, imports.failure == nil, imports.unused == nil {
      add(
        "devices",
        "there are none yet: nothing that can be imported is announced",
        advice:
          "Devices appear once their bridge announces them to this broker; \(command("import"))"
          + " says what is skipped, and why."
      )
    }
  }

  private mutating func addReports() {
    if let first = report.devices.unheard.first {
      let value = first.pointer.isEmpty ? "" : " with \(first.pointer)"
      add(
        "reports",
        "\(first.key) has not been reported since the start: no message on \(first.topic)\(value)"
          + Self.more(report.devices.unheard.count - 1),
        advice: #"Correct "topic" or "state" in the device file, or switch the device on;"#
          + #" "settle describe \#(first.key)" shows what is read."#
      )
    }
    if let first = report.devices.unreadable.first {
      add(
        "reports",
        "\(first.key) is reported in a way that cannot be read: \(first.reports.last)"
          + Self.more(report.devices.unreadable.count - 1),
        advice: #"Compare "type", and "value" of "state", in the device file with the report;"#
          + #" "settle describe \#(first.key)" shows what is read."#
      )
    }
  }

  private static func more(_ count: Int) -> String {
    switch count {
    case 0: ""
    case 1: " (and 1 more property)"
    default: " (and \(count) more properties)"
    }
  }

  private mutating func addRestart() {
    guard !report.restart.isEmpty else { return }
    add(
      "configuration",
      "changed in the files, and not in force: \(report.restart.joined(separator: ", "))",
      advice: #"Restart the gateway: "systemctl restart settled"; pending values are sent first."#
    )
  }
}

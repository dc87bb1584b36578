// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
internal import Values

/// The lines that `settle status` prints.
package struct StatusText {
  /// One line, and how it looks on a terminal with colors.
  package struct Line: Hashable, Sendable {
    package enum Tone: Hashable, Sendable { case plain, good, bad, advice, faint }

    package var text: String
    package var tone: Tone
  }

  private let report: StatusReport
  private let width: Int
  private var lines: [Line] = []
  private static let margin = 10

  /// The lines of a report; red lines are wrapped at `width` columns.
  package static func lines(of report: StatusReport, width: Int) -> [Line] {
    var text = StatusText(report: report, width: max(width, 40))
    text.addHead()
    text.addProblems()
    text.addFacts()
    text.addSettings()
    return text.lines
  }

  private mutating func add(_ text: String, _ tone: Line.Tone = .plain) {
    lines.append(Line(text: Excerpt.visible(text), tone: tone))
  }

  /// Adds a fact under a heading; further ones of the same heading have an empty one.
  private mutating func add(_ heading: String, _ text: String, _ tone: Line.Tone = .plain) {
    add(Self.padded(heading, to: Self.margin) + text, tone)
  }

  private mutating func addWrapped(
    _ first: String,
    _ text: String,
    _ tone: Line.Tone
  ) {
    let room = width - first.count
    var line = ""
    var isFirst = true
    func lead() -> String { isFirst ? first : String(repeating: " ", count: first.count) }
    for word in text.split(separator: " ") {
      if !line.isEmpty, line.count + word.count + 1 > room {
        add(lead() + line, tone)
        isFirst = false
        line = ""
      }
      line += (line.isEmpty ? "" : " ") + word
    }
    add(lead() + line, tone)
  }

  private static func padded(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(1, width - text.count))
  }

  // MARK: - Parts

  private mutating func addHead() {
    guard report.isRunning else {
      return add("settle \(report.version): no gateway; this is what it would use", .bad)
    }
    let time = report.runningMilliseconds.map { " for \(AgeText.text($0))" } ?? ""
    let state = report.problems.isEmpty ? "is well" : "needs attention"
    add(
      "settle \(report.version) runs\(time) and \(state)",
      report.problems.isEmpty ? .good : .bad
    )
  }

  private mutating func addProblems() {
    add("")
    for problem in report.problems {
      addWrapped("! ", "\(problem.subject): \(problem.message)", .bad)
      addWrapped("  -> ", problem.advice, .advice)
    }
    if !report.problems.isEmpty { add("") }
  }

  private mutating func addFacts() {
    if let socket = report.socket { add("socket", socket) }
    for (place, broker) in report.brokers.enumerated() {
      add(place == 0 ? "broker" : "", Self.text(broker), broker.isConnected ? .plain : .bad)
    }
    let devices = report.devices
    add(
      "devices",
      "\(devices.count) with \(CountText.text(devices.keys, "property", "properties"))"
        + (devices.awayCount > 0 ? ", \(devices.awayCount) offline" : "")
        + (devices.sleepers.isEmpty ? "" : ", \(devices.sleepers.count) asleep")
        + (devices.unheardCount > 0 ? ", \(devices.unheardCount) unheard" : "")
    )
    addQueue()
    if let journal = report.journal {
      let waiting = CountText.text(journal.waiting, "change waits", "changes wait")
      add(
        "journal",
        "\(journal.path): \(journal.fault ?? "works, \(waiting) for the disk")",
        journal.fault == nil ? .plain : .bad
      )
    }
    if let cluster = report.cluster { add(cluster) }
    if let http = report.http {
      add(
        "http",
        http.listen.joined(separator: ", ")
          + ": \(CountText.text(http.connections, "connection"))"
          + ", \(CountText.text(http.streams, "event stream"))"
          + ", \(http.refused) refused"
      )
    }
    if let imports = report.imports { add(imports) }
    addCounters()
    for warning in report.warnings { addWrapped(Self.padded("warning", to: 10), warning, .plain) }
  }

  /// How many of the names and refusals of an import are shown.
  private static let shownImports = 5

  private mutating func add(_ imports: StatusReport.Import) {
    func named(_ names: [String], of count: Int) -> String {
      names.prefix(Self.shownImports).joined(separator: ", ")
        + (count > Self.shownImports ? " and \(count - Self.shownImports) more" : "")
    }
    let added =
      imports.added.isEmpty ? "" : ", newest " + named(imports.added, of: imports.addedCount)
    let age = imports.ageMilliseconds.map { ", looked \(AgeText.text($0)) ago" } ?? ""
    add("import", CountText.text(imports.devices, "device") + added + age)
    for refusal in imports.refused.prefix(Self.shownImports) {
      addWrapped(
        Self.padded("", to: Self.margin),
        "refused: \(refusal.subject): \(refusal.reason)",
        .plain
      )
    }
    let rest = imports.refusedCount - Self.shownImports
    if rest > 0 { add("", "\(rest) more refused; --json and the log have them") }
    guard !imports.gone.isEmpty else { return }
    addWrapped(
      Self.padded("", to: Self.margin),
      "no longer announced: \(named(imports.gone, of: imports.goneCount)); remove them from the"
        + " files if they are gone",
      .plain
    )
  }

  private mutating func add(_ cluster: StatusReport.Cluster) {
    let free = cluster.owners.count { $0 == nil }
    add(
      "cluster",
      "\(cluster.name), this is \(cluster.member): "
        + CountText.text(cluster.owners.count, "partition")
        + (free > 0 ? ", \(free) without an owner" : ""),
      free == 0 ? .plain : .bad
    )
    for member in cluster.members {
      let age = member.renewedMilliseconds.map { ", seen \(AgeText.text($0)) ago" } ?? ""
      add(
        "",
        "\(member.name): \(member.state), drives \(member.partitions)\(age)"
          + (member.hasSameDevices ? "" : ", has other device files")
          + (member.unreadableText.map { ", cannot read \($0)" } ?? ""),
        member.hasSameDevices && member.unreadable.isEmpty ? .plain : .bad
      )
    }
    let engine = cluster.engine
    let waiting = CountText.text(engine.waiting, "change waits", "changes wait")
    add(
      "engine",
      engine.problem ?? "\(engine.server ?? "connected"): works, \(waiting) for it",
      engine.problem == nil ? .plain : .bad
    )
    let words = "its servers write to their disks before they acknowledge"
    if engine.writesFirst == true { add("", words) }
    if engine.writesFirst == nil, let reason = engine.writesReason {
      add("", "not known whether \(words): \(reason)")
    }
  }

  private mutating func addQueue() {
    guard let queue = report.queue else { return }
    add(
      "queue",
      "\(queue.pending) pending of \(queue.limit) at most: \(queue.quiet) until quiet,"
        + " \(queue.offline) offline" + (queue.asleep > 0 ? ", \(queue.asleep) asleep" : "")
    )
    add("", "\(queue.inFlight) in flight, \(queue.unconfirmed) not confirmed yet")
    // The lane of devices without one is of interest while something is in it.
    let lanes = queue.lanes.filter { !$0.name.isEmpty || $0.waiting + $0.inFlight > 0 }
    for (place, lane) in lanes.enumerated() {
      let name = lane.name.isEmpty ? "(none)" : lane.name
      let limits = [lane.rate.map(Self.rate), lane.window.map(Self.window)].compactMap { $0 }
      add(
        place == 0 ? "lanes" : "",
        "\(name): \(lane.waiting) waiting, \(lane.inFlight) in flight, "
          + (limits.isEmpty ? "no limit" : limits.joined(separator: ", "))
      )
    }
  }

  private static func window(_ window: StatusReport.Window) -> String {
    let time = window.roundTripMilliseconds.map { ", confirmed in \($0) ms" } ?? ""
    let lost = window.lost > 0 ? ", \(window.lost) lost" : ""
    return "window \(window.inUse) of \(window.size)\(time)\(lost)"
  }

  private mutating func addCounters() {
    let parts = report.counters.filter { $0.count > 0 }.map { counter in
      "\(counter.count) \(counter.name.split(separator: "_").joined(separator: " "))"
    }
    if !parts.isEmpty {
      addWrapped(Self.padded("counters", to: Self.margin), parts.joined(separator: ", "), .plain)
    }
  }

  private mutating func addSettings() {
    guard !report.settings.isEmpty else { return }
    add("")
    let names = report.settings.map(\.name.count).max() ?? 0
    let values = min(report.settings.map(\.value.count).max() ?? 0, width / 2)
    for setting in report.settings {
      let line =
        Self.padded(setting.name, to: names + 2) + Self.padded(setting.value, to: values + 2)
        + setting.origin
      add(line, setting.origin == "default" ? .faint : .plain)
    }
  }

  // MARK: - Words

  private static func text(_ broker: StatusReport.Broker) -> String {
    let name = broker.name == "mqtt" ? "" : "\(broker.name) "
    let age = broker.sinceMilliseconds.map { " for \(AgeText.text($0))" } ?? ""
    let state =
      switch broker.state {
      case .connected: "connected"
      case .connecting: "connecting"
      case .waiting, .idle: "not connected"
      }
    let losses = broker.losses > 0 ? ", lost \(broker.losses) times" : ""
    let dropped = broker.dropped > 0 ? ", \(broker.dropped) messages dropped" : ""
    let address = broker.address.flatMap { broker.url.has($0) ? nil : " (\($0))" } ?? ""
    let held = broker.quarantined.count
    let quarantined = held > 0 ? ", \(CountText.text(held, "topic")) quarantined" : ""
    return "\(name)\(broker.url)\(address): \(state)\(age)\(losses)\(dropped)\(quarantined)"
  }

  /// `10/s`, or `30/m` where a second is too short.
  private static func rate(_ rate: Double) -> String {
    let (amount, unit) =
      rate >= 1 ? (rate, "s") : rate * 60 >= 1 ? (rate * 60, "m") : (rate * 3600, "h")
    let tenths = Int((amount * 10).rounded())
    return tenths % 10 == 0 ? "\(tenths / 10)/\(unit)" : "\(tenths / 10).\(tenths % 10)/\(unit)"
  }
}

/// Numbers of things for people: `1 device`, `2 devices`.
package enum CountText {
  /// A number of things; `many` is `one` with an s where it is not given.
  package static func text(_ number: Int, _ one: String, _ many: String? = nil) -> String {
    "\(number) \(number == 1 ? one : many ?? one + "s")"
  }
}

/// Durations for people: `0.3s`, `12s`, `5m`, `3h`, `2d`.
package enum AgeText {
  /// A duration in milliseconds in short form.
  package static func text(_ milliseconds: Int) -> String {
    switch milliseconds {
    case ..<10_000: JSONWriter.text(.number(Double(milliseconds / 100) / 10)) + "s"
    case ..<120_000: "\(milliseconds / 1000)s"
    case ..<7_200_000: "\(milliseconds / 60_000)m"
    case ..<172_800_000: "\(milliseconds / 3_600_000)h"
    default: "\(milliseconds / 86_400_000)d"
    }
  }
}

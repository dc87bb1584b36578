// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
package import Devices
import Gateway
package import JSON
package import LastOut
import Operations
import Values

/// The output of the demo while it runs.
extension DemoStage {
  /// The width of the column with the keys.
  private var keyWidth: Int { 32 }

  func announce() {
    screen.line([
      .init("settle demo", .bold),
      .init(
        ": a real mosquitto on 127.0.0.1:\(broker.port), \(driver.devices.count) simulated devices,"
          + " the gateway."
      ),
    ])
    screen.line("The panel: http://127.0.0.1:\(panel.port)/")
    screen.line(
      options.script == nil
        ? "Gestures and devices are simulated from the stated speeds and pauses; MQTT, gateway and timing"
          + " are real."
        : "The devices are simulated; MQTT, gateway and timing are real.",
      .faint
    )
  }

  func show(_ act: DemoScript.Act) {
    screen.line()
    screen.line([time(), .init(act.title, .bold)])
  }

  /// Rewrites the bottom line with the keys that are being changed.
  func showFlood() {
    guard screen.isInteractive else { return }
    var pieces = [time()]
    for key in ledger.order where !ledger[key].burst.isEmpty {
      let burst = ledger[key].burst
      pieces.append(.init(registry[key].key + " "))
      pieces.append(.init("\(burst.count) in ", .cyan))
      pieces.append(.init(Sparkline.of(burst, limit: 10) + "   ", .cyan))
    }
    screen.status(pieces)
  }

  func show(command topic: String, _ payload: [UInt8], _ keys: [String]) {
    let now = EventLoop.now()
    let indices = keys.compactMap { try? registry.index(of: $0) }
    var moments: [Moment] = []
    for key in indices {
      moments += ledger[key].burst
      ledger.command(key, at: now)
      ledger.closeBurst(key)
    }
    moments.sort()
    let name = keys.first.map { first in
      keys.dropFirst().reduce(first) { $0 + "+" + ($1.split(separator: "/").last ?? "") }
    }
    screen.line(
      [
        time(), .init(padded(name ?? topic)),
        .init(padded("\(moments.count) in", to: 7), .cyan),
        .init(padded(Sparkline.of(moments, limit: 14), to: 15), .cyan),
        .init("1 out ", .green),
        .init("\(topic) \(String(decoding: payload, as: UTF8.self))", .faint),
      ],
      isCut: true
    )
    showFlood()
  }

  func show(_ event: EventObject, of key: KeyIndex) {
    let value = event.value.map { JSONWriter.text($0) } ?? ""
    switch event.phase {
    case .accepted, .superseded, .sending, .sent: return
    case .confirmed:
      screen.line([
        time(), .init(padded(event.key)), .init("the device shows ", .green),
        .init(value, .green),
      ])
    case .unchanged, .cancelled:
      ledger.closeBurst(key)
      showEnd(event, value, .faint)
    case .rejected, .failed, .expired:
      ledger.closeBurst(key)
      showEnd(event, value, .red)
    }
    showFlood()
  }

  private func showEnd(_ event: EventObject, _ value: String, _ color: DemoScreen.Color) {
    let reason = event.reason.map { " (\($0))" } ?? ""
    screen.line([
      time(), .init(padded(event.key)), .init("\(value) \(event.phase.rawValue)\(reason)", color),
    ])
  }

  func showSummary() {
    screen.line()
    let lines = DemoSummary.lines(of: ledger)
    screen.line(lines[0], .faint)
    for line in lines.dropFirst() { screen.line(line) }
    screen.line(
      "worst late: from the deadline to the broker, measured from the last change",
      .faint
    )
    screen.line()
    let changes = ledger.order.reduce(0) { $0 + ledger[$1].changes }
    let statistics = gateway.statistics
    let messages = CountText.text(Int(statistics.published), "message")
    screen.line([
      .init("\(CountText.text(changes, "change")) in, \(messages) out", .bold),
      .init(
        "; no value left the queue more than "
          + "\(DemoSummary.milliseconds(statistics.worstLateness)) after it was due."
      ),
    ])
    showDirectReplay()
    screen.line(
      ledger.isDone
        ? "Every device that reports its state reports its last target."
        : "NOT every device reports its last target.",
      ledger.isDone ? .green : .red
    )
  }

  /// Shows what the same changes would have done to the same devices without Settle.
  private func showDirectReplay() {
    let replay = DirectReplay(script, registry: registry, devices: house.devices)
    var line =
      "Without Settle (same gestures, same devices, computed): "
      + CountText.text(replay.commands, "command")
    if replay.dropped > 0 { line += ", \(replay.dropped) of them lost by busy devices" }
    screen.line(line + ".")
    for mismatch in replay.mismatches {
      let actual = mismatch.actual.map { JSONWriter.text($0) } ?? "nothing"
      screen.line(
        "  \(mismatch.key) would have stayed at \(actual), not \(JSONWriter.text(mismatch.target))."
      )
    }
  }

  func showInvitation() {
    let program = Self.clientPath
    screen.line()
    screen.line("Still running; Ctrl-C ends it. In a browser:", .bold)
    screen.line("  http://127.0.0.1:\(panel.port)/")
    screen.line("In another terminal:", .bold)
    screen.line("  export SETTLE_SOCKET=\(socket)")
    for words in ["watch", "get"] + house.tries {
      screen.line("  \(program) \(words)")
    }
    screen.line("  mosquitto_sub -p \(broker.port) -v -t '#'")
    screen.line(
      "  mosquitto_pub -p \(broker.port) -t \(house.message.topic) -m \(house.message.payload)"
    )
    screen.line()
  }

  /// The path of `settle` beside this program, relative to the current folder if possible.
  private static var clientPath: String {
    guard let own = CommandLine.arguments.first else { return "settle" }
    let client = own.hasSuffix("/settled") ? String(own.dropLast()) : own
    let relative = WorkingFolder.relative(client)
    return relative == client ? client : "./" + relative
  }

  func time() -> DemoScreen.Piece {
    let elapsed = max(.zero, start.duration(to: EventLoop.now()))
    let hundredths = Int((elapsed / .milliseconds(10)).rounded())
    let rest = hundredths % 100
    let text = "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
    return .init(String(repeating: " ", count: max(0, 6 - text.count)) + text + " s  ", .faint)
  }

  private func padded(_ text: String, to width: Int? = nil) -> String {
    text + String(repeating: " ", count: max(1, (width ?? keyWidth) - text.count))
  }
}

/// Draws the distribution of changes over time as a row of small bars.
package enum Sparkline {
  /// One bar for each `cell` of time between the first and the last moment; a blank for none.
  ///
  /// Cells grow so that there are at most `limit` bars. `moments` must be in order.
  package static func of(
    _ moments: [Moment],
    cell: Duration = .milliseconds(100),
    limit: Int = 20
  ) -> String {
    guard let first = moments.first, let last = moments.last else { return "" }
    let span = first.duration(to: last)
    let width = max(cell, span / limit + .nanoseconds(1))
    var counts = Array(repeating: 0, count: Int(span / width) + 1)
    for moment in moments { counts[Int(first.duration(to: moment) / width)] += 1 }
    let highest = counts.max() ?? 1
    return String(counts.map { TimelinePlot.Marks.unicode.bar($0, of: highest) })
  }
}

/// The table at the end: changes, commands and the final values of each key.
package struct DemoSummary {
  package static let headings = [
    "key", "changes in", "commands out", "collapsed", "worst late", "target", "device",
  ]

  /// One row for each changed key, with the columns of ``headings``.
  package static func rows(of ledger: DemoLedger) -> [[String]] {
    ledger.order.map { key in
      let account = ledger[key]
      return [
        ledger.registry[key].key, String(account.changes), String(account.commands),
        factor(account.changes, account.commands),
        account.worstLateness.map(milliseconds) ?? "-",
        account.target.map { JSONWriter.text($0) } ?? "-", device(ledger, key),
      ]
    }
  }

  /// The table as lines; the first and last column are left-aligned, the others right-aligned.
  package static func lines(of ledger: DemoLedger) -> [String] {
    let table = [headings] + rows(of: ledger)
    let widths = headings.indices.map { column in table.map { $0[column].count }.max() ?? 0 }
    return table.map { row in
      var line = ""
      for (column, cell) in row.enumerated() {
        let padding = String(repeating: " ", count: widths[column] - cell.count)
        let isLeft = column == 0 || column == headings.count - 1
        line += isLeft ? cell + padding : padding + cell
        line += "  "
      }
      return String(TimelinePlot.trimmed(line))
    }
  }

  /// The ratio as `100:1`, with one decimal if it is not whole.
  static func factor(_ changes: Int, _ commands: Int) -> String {
    guard commands > 0 else { return "-" }
    let ratio = (Double(changes) / Double(commands) * 10).rounded() / 10
    return JSONWriter.text(.number(ratio)) + ":1"
  }

  /// A duration in milliseconds with two decimals.
  package static func milliseconds(_ duration: Duration) -> String {
    let hundredths = (duration / .microseconds(10)).rounded()
    return JSONWriter.text(.number(hundredths / 100)) + " ms"
  }

  private static func device(_ ledger: DemoLedger, _ key: KeyIndex) -> String {
    switch ledger.agrees(key) {
    case nil: "no state"
    case true?: "agrees"
    case false?: "at " + (ledger[key].reported.map { JSONWriter.text($0) } ?? "nothing")
    }
  }
}

/// The demo's output: permanent lines, and a status line at the bottom.
package struct DemoScreen {
  package enum Color: String, Sendable {
    case cyan = "36"
    case green = "32"
    case red = "31"
    case faint = "2"
    case bold = "1"
  }

  /// A piece of a line.
  package struct Piece: Sendable {
    var text: String
    var color: Color?

    package init(_ text: String, _ color: Color? = nil) {
      self.text = text
      self.color = color
    }
  }

  /// Whether the last line may be rewritten.
  package let isInteractive: Bool
  package let hasColor: Bool
  /// In columns.
  package let width: Int
  private let write: (String) -> Void
  private var hasStatus = false

  package init(
    isInteractive: Bool,
    hasColor: Bool,
    width: Int,
    write: @escaping (String) -> Void
  ) {
    self.isInteractive = isInteractive
    self.hasColor = hasColor
    self.width = width
    self.write = write
  }

  /// Prints a permanent line.
  ///
  /// With `isCut`, it is cut to the width of a terminal.
  package mutating func line(_ pieces: [Piece], isCut: Bool = false) {
    clearStatus()
    write(render(pieces, isCut: isCut) + "\n")
  }

  package mutating func line(_ text: String = "", _ color: Color? = nil) {
    line([Piece(text, color)])
  }

  /// Shows a status line, which the next line replaces; does nothing without a terminal.
  package mutating func status(_ pieces: [Piece]) {
    guard isInteractive else { return }
    write("\r\u{1B}[K" + render(pieces, isCut: true))
    hasStatus = true
  }

  package mutating func clearStatus() {
    guard hasStatus else { return }
    write("\r\u{1B}[K")
    hasStatus = false
  }

  private func render(_ pieces: [Piece], isCut: Bool) -> String {
    var room = isInteractive && isCut ? width - 1 : .max
    var result = ""
    for piece in pieces where room > 0 {
      var text = piece.text
      if text.count > room { text = String(text.prefix(room - 1)) + "…" }
      room -= text.count
      if hasColor, let color = piece.color {
        result += "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m"
      } else {
        result += text
      }
    }
    return result
  }
}

/// A replay of a script without Settle, in which every change is a command.
///
/// It runs on a virtual clock with a network that takes no time.
package struct DirectReplay {
  /// A key whose device ended at another value than the last requested one.
  package struct Mismatch: Hashable, Sendable {
    package var key: String
    package var target: JSONValue
    /// The device's last report; `nil` if it reports nothing.
    package var actual: JSONValue?

    package init(key: String, target: JSONValue, actual: JSONValue?) {
      self.key = key
      self.target = target
      self.actual = actual
    }
  }

  package private(set) var commands = 0
  package private(set) var ledger: DemoLedger
  private var devices: [any SimulatedDevice]
  private var targets: [KeyIndex: Value] = [:]

  /// Plays `script` to its end.
  package init(_ script: DemoScript, registry: Registry, devices: [any SimulatedDevice]) {
    ledger = DemoLedger(registry: registry)
    self.devices = devices
    for index in self.devices.indices { record(self.devices[index].start(at: .zero)) }
    for request in script.changes {
      let now = Moment(nanoseconds: UInt64(max(0, request.at ?? 0) * 1_000_000))
      wakeDevices(through: now)
      play(request, at: now)
    }
    wakeDevices(through: Moment(nanoseconds: .max))
  }

  /// The number of commands that busy devices lost.
  package var dropped: Int { devices.reduce(0) { $0 + $1.tally.dropped } }

  /// The keys whose device lost commands and ended at another value than the last requested one.
  package var mismatches: [Mismatch] {
    ledger.order.compactMap { key -> Mismatch? in
      let entry = ledger.registry[key]
      let lostSome = devices.contains {
        $0.tally.dropped > 0 && $0.listens(to: entry.property.command.topic)
      }
      guard let target = targets[key], ledger.agrees(key) == false, lostSome else { return nil }
      return Mismatch(key: entry.key, target: target.json, actual: ledger[key].reported)
    }
  }

  private mutating func play(_ request: ControlRequest, at now: Moment) {
    for member in request.deviceMembers ?? [] {
      play(ControlRequest(.set(member.value), key: "\(request.key)/\(member.name)"), at: now)
    }
    guard let key = try? ledger.registry.index(of: request.key),
      let value = value(request.operation, of: key)
    else { return }
    let property = ledger.registry[key].property
    ledger.change(key, at: now)
    targets[key] = value
    // After a stop, the device itself decides at which value the ended properties are.
    for other in property.ends {
      let device = ledger.registry[key].device
      guard let ended = try? ledger.registry.index(of: other, inDevice: device) else { continue }
      targets[ended] = nil
    }
    var payload: [UInt8] = []
    property.command.payload.render(property.wireValue(of: value), into: &payload)
    commands += 1
    let message = DeviceMessage(topic: property.command.topic, payload: payload)
    for index in devices.indices where devices[index].listens(to: message.topic) {
      record(devices[index].receive(message, at: now))
    }
    for (key, target) in targets { ledger.target(key, target.json) }
  }

  private func value(_ operation: ControlRequest.Operation, of key: KeyIndex) -> Value? {
    let property = ledger.registry[key].property
    let base = targets[key] ?? ledger[key].reported.flatMap { property.value(fromWire: $0) }
    switch operation {
    case .set(let input): return try? property.value(from: input)
    case .step(let amount):
      guard let number = try? amount.number(for: property.kind) else { return nil }
      return base.flatMap { try? property.stepped(from: $0, by: number) }
    case .toggle: return base.flatMap { try? property.toggled(from: $0) }
    case .scene, .cancel, .flush, .get, .pending, .watch, .describe, .record, .reload, .status,
      .log, .devices:
      return nil
    }
  }

  private mutating func wakeDevices(through end: Moment) {
    while let wake = devices.compactMap(\.nextWake).min(), wake <= end {
      for index in devices.indices where devices[index].nextWake.map({ $0 <= wake }) == true {
        record(devices[index].wake(at: wake))
      }
    }
  }

  private mutating func record(_ messages: [DeviceMessage]) {
    for message in messages {
      ledger.report(topic: message.topic, document: message.document)
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import Gateway
import Glibc
import JSON
import LastOut
import Operations
import PrivateBroker
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
  func showFlood(at now: Moment) {
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
    showFlood(at: now)
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
    showFlood(at: EventLoop.now())
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
    screen.line([
      .init(
        Self.count(changes, "change") + " in, " + Self.count(Int(statistics.published), "message")
          + " out",
        .bold
      ),
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
      + Self.count(replay.commands, "command")
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
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    guard unsafe getcwd(&buffer, buffer.count) != nil else { return client }
    let folder = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    let prefix = String(decoding: folder, as: UTF8.self) + "/"
    return client.hasPrefix(prefix) ? "./" + client.dropFirst(prefix.count) : client
  }

  private static func count(_ number: Int, _ noun: String) -> String {
    "\(number) \(noun)\(number == 1 ? "" : "s")"
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

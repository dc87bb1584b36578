// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices
internal import JSON
internal import LastOut
import Values

/// Everything about the selected property and the last error, in lines that fit the screen.
struct DetailText {
  private(set) var lines: [String] = []
  private let width: Int

  init(_ screen: ControlScreen) {
    width = max(8, screen.size.columns - 2)
    if let row = screen.selectedRow {
      describe(row, isBrokerAway: screen.link.brokerTrouble != nil)
    }
    if case .lost(let reason) = screen.link.state { add("gateway: \(reason)") }
    if let trouble = screen.link.brokerTrouble { add("no broker: \(trouble)") }
    if let error = screen.lastError { add("last error: \(error)") }
    if lines.isEmpty { add("no property is selected") }
  }

  private mutating func describe(_ row: ScreenRow, isBrokerAway: Bool) {
    let property = row.property
    add(property.key)
    add([property.deviceName, property.name].compactMap(\.self).joined(separator: ", "))
    add("")
    if let target = row.target { add("target \(ValueFormat.text(target, of: property))") }
    if let actual = row.actual { add("actual \(ValueFormat.text(actual, of: property))") }
    if let word = row.lastSent { add("sent last \(ValueFormat.text(word))") }
    add(Self.state(row.progress, isBrokerAway: isBrokerAway))
    add("")
    if !property.isReadOnly { add("accepts \(ValueFormat.rule(property))") }
    add(ValueFormat.policy(property))
    if !property.urgent.isEmpty {
      add("urgent \(property.urgent.map { ValueFormat.text($0) }.joined(separator: ", "))")
    }
    if !property.ends.isEmpty { add("which ends \(property.ends.joined(separator: ", "))") }
    add("")
  }

  private static func state(_ progress: Progress, isBrokerAway: Bool) -> String {
    switch progress {
    case .idle: "no command yet"
    case .querying: "asking the device"
    case .settling: "settling"
    case .waiting(.quiet, _): "settling"
    case .waiting(.lane, _): "waits for its lane"
    case .waiting(.inFlight, _): "waits for the command before it"
    case .waiting(.offline, _):
      isBrokerAway ? "waits for the broker" : "waits for the device, which is offline"
    case .waiting(.unknown, _): "waits, the device's availability is not known yet"
    case .waiting(.asleep, _): "waits for the device, which is asleep"
    case .sending: "sending"
    case .sent: "sent, waits for the device"
    case .ended(let phase, let reason, _):
      phase.rawValue + (reason.map { ": \($0)" } ?? "")
    }
  }

  /// Adds a text, broken between words where it is too long.
  private mutating func add(_ text: String) {
    var line = ""
    for word in text.split(separator: " ", omittingEmptySubsequences: false) {
      var word = String(word)
      if !line.isEmpty, CellWidth.of(line) + 1 + CellWidth.of(word) > width {
        lines.append(line)
        line = ""
      }
      while CellWidth.of(word) > width {
        var part = ""
        while let first = word.first, CellWidth.of(part) + CellWidth.of(first) <= width {
          part.append(first)
          word.removeFirst()
        }
        lines.append(part)
      }
      line += (line.isEmpty ? "" : " ") + word
    }
    lines.append(line)
  }
}

/// Formats values and times for the screen.
enum ValueFormat {
  /// A value of a property as people read it, without its unit.
  static func text(_ value: JSONValue?, of property: PropertyRow) -> String {
    guard let number = value?.double, let rule = property.kind.numberRule else {
      return text(value)
    }
    return NumberText.shortest(rule.shown(number).number)
  }

  /// A value without its unit, colors as `#rrggbb`; `-` for none.
  static func text(_ value: JSONValue?) -> String {
    switch value {
    case nil, .null: "-"
    case .boolean(let flag): flag ? "on" : "off"
    case .string(let text): text
    case .object:
      // Only colors are objects.
      if case .color(let color)? = value.flatMap({ try? ValueKind.color.value(from: $0) }) {
        color.hexText
      } else {
        value.map { JSONWriter.text($0) } ?? "-"
      }
    case .some(let value): JSONWriter.text(value)
    }
  }

  /// A duration, rounded up to few characters: `0.3s`, `12s`, `5m`.
  static func time(_ duration: Duration) -> String {
    let tenths = (duration.wholeNanoseconds + 99_999_999) / 100_000_000
    if tenths < 100 { return "\(tenths / 10).\(tenths % 10)s" }
    let seconds = tenths / 10
    if seconds < 120 { return "\(seconds)s" }
    return seconds < 7200 ? "\(seconds / 60)m" : "\(seconds / 3600)h"
  }

  /// The values that a property accepts, such as `0 to 254, step 1`.
  static func rule(_ property: PropertyRow) -> String {
    switch property.kind {
    case .number(let rule), .integer(let rule):
      rule.display == nil
        ? rule.allowed + (rule.step.map { ", step \(NumberText.shortest($0))" } ?? "")
        : rule.shownAllowed
    case .boolean: "on or off"
    case .choice(let words), .action(let words): words.joined(separator: ", ")
    case .text: "a text"
    case .color: "a color"
    }
  }

  /// A property's policy, such as `settles 300ms, at most 2s`.
  static func policy(_ property: PropertyRow) -> String {
    if property.isReadOnly { return "read-only" }
    let policy = property.policy
    let apart =
      policy.minInterval > .zero ? ", \(DurationText.text(policy.minInterval)) apart" : ""
    if policy.delay == .zero { return "sent at once\(apart)" }
    let most = policy.maxWait.map { ", at most \(DurationText.text($0))" } ?? ""
    return "settles \(DurationText.text(policy.delay))\(most)"
      + (policy.leading ? ", first at once" : "") + apart
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Glibc
import JSON
import Values

/// One event as a line: aligned and colored on a terminal, tab separated in a pipe.
enum EventLine {
  /// Prints an event as a line, or as an object.
  static func print(_ event: EventObject, asJSON isObject: Bool, withTime: Bool) {
    if isObject { return StandardOutput.print(bytes: event.bytes) }
    StandardOutput.print(text(event, withTime: withTime))
  }

  static func text(_ event: EventObject, withTime: Bool) -> String {
    guard Terminal.isInteractive else {
      let fields = [
        event.at, event.key, event.phase.rawValue, ValueText.text(event.value),
        "\(event.collapsed)", event.source ?? "-", event.reason ?? "-",
      ]
      return fields.map { Excerpt.visible($0) }.joined(separator: "\t")
    }
    var parts: [String] = []
    if withTime { parts.append(Terminal.colored(time(event.at), .faint)) }
    parts.append(Excerpt.visible(event.key))
    parts.append(Terminal.colored(Excerpt.visible(ValueText.text(event.value)), .bold))
    parts.append(Terminal.colored(event.phase.rawValue, color(event.phase)))
    if event.collapsed > 0 {
      parts.append(Terminal.colored("(\(event.collapsed) collapsed)", .faint))
    }
    if event.attempt > 1 { parts.append("attempt \(event.attempt)") }
    if withTime, let source = event.source { parts.append("by \(Excerpt.visible(source))") }
    if let reason = event.reason { parts.append("- \(Excerpt.visible(reason))") }
    return parts.joined(separator: " ")
  }

  static func color(_ phase: Phase) -> Terminal.Color? {
    switch phase {
    case .confirmed, .unchanged: .green
    case .sent, .sending: .cyan
    case .accepted: nil
    case .superseded, .cancelled: .yellow
    case .rejected, .failed, .expired: .red
    }
  }

  /// The local time of day of a UTC timestamp; a timestamp in another form stays as it is.
  private static func time(_ timestamp: String) -> String {
    let numbers = timestamp.split(whereSeparator: { !$0.isNumber }).compactMap { Int32($0) }
    guard numbers.count == 7 else { return Excerpt.visible(timestamp) }
    var utc = unsafe tm()
    unsafe utc.tm_year = numbers[0] - 1900
    unsafe utc.tm_mon = numbers[1] - 1
    unsafe utc.tm_mday = numbers[2]
    unsafe (utc.tm_hour, utc.tm_min, utc.tm_sec) = (numbers[3], numbers[4], numbers[5])
    var moment = unsafe timegm(&utc)
    var here = unsafe tm()
    guard unsafe localtime_r(&moment, &here) != nil else { return Excerpt.visible(timestamp) }
    let fields = unsafe [(here.tm_hour, 2), (here.tm_min, 2), (here.tm_sec, 2), (numbers[6], 3)]
    let texts = fields.map { number, width in
      String(repeating: "0", count: max(0, width - "\(number)".count)) + "\(number)"
    }
    return texts.prefix(3).joined(separator: ":") + "." + texts[3]
  }
}

/// Parses and formats values for the terminal.
enum ValueText {
  /// The members of a typed object with `value`, their numbers as they are written; `nil` for
  /// anything else.
  static func envelope(_ text: String) -> [JSONValue.Member]? {
    guard text.contains("{"), let object = try? JSONParser.parseQuotingNumbers(text.utf8.span),
      object["value"] != nil
    else { return nil }
    return object.members
  }

  /// Parses a typed value, which the gateway converts to the property's type.
  ///
  /// It is a text unless it reads the same as JSON: a text is not to change its digits or blanks.
  /// The gateway reads numbers of a text, but no colors. A list or another object is a text too,
  /// unless it `isMember` of several, of which one may be an option of the device.
  static func json(_ text: String, isMember: Bool = false) -> JSONValue {
    if let value = envelope(text)?.first(where: { $0.name == "value" })?.value { return value }
    guard let value = try? JSONParser.parse(text) else { return .string(text) }
    if case .null = value { return .string(text) }
    if value.string != nil || Color(object: value) != nil { return value }
    if !isMember, value.elements != nil || value.members != nil { return .string(text) }
    return JSONWriter.text(value) == text ? value : .string(text)
  }

  /// A value for a table: texts without quotes, colors as `#rrggbb`, `-` for none.
  static func text(_ value: JSONValue?) -> String {
    switch value {
    case nil, .null: "-"
    case .some(let value): shown(value)
    }
  }

  /// A value for people: a number of this type as they read it, with its unit.
  static func text(_ value: JSONValue?, of kind: ValueKind?) -> String {
    guard let number = value?.double, let rule = kind?.numberRule else { return text(value) }
    let (shown, unit) = rule.shown(number)
    return NumberText.shortest(shown) + (unit.map { " \($0)" } ?? "")
  }

  /// A value without quotes; of all values only colors are objects.
  static func shown(_ value: JSONValue) -> String {
    switch value {
    case .string(let text): return text
    case .object:
      guard case .color(let color)? = try? ValueKind.color.value(from: value) else { break }
      return color.hexText
    case .null, .boolean, .integer, .number, .array: break
    }
    return JSONWriter.text(value)
  }

  /// A duration in short form: `0.3s`, `12s`, `5m`, `3h`, `2d`.
  static func age(_ milliseconds: Int?) -> String {
    milliseconds.map(AgeText.text) ?? "-"
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import JSON
internal import LastOut
internal import Values

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

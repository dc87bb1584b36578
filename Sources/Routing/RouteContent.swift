// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import JSON
import LastOut

extension RouteMachine {
  /// A payload that a route carries from one topic to another.
  struct Content {
    enum Body {
      case bytes([UInt8])
      /// `merge: json`: the newest of each member.
      case members([JSONValue.Member])
    }

    var body: Body
    /// The gateways the message has passed; empty for most.
    var trail: String
    /// When the newest message in it was accepted, counted in messages.
    var stamp: UInt64
    /// The payload as JSON, where it is not merged and groups matter.
    var document: JSONValue?

    var payload: [UInt8] {
      switch body {
      case .bytes(let bytes): bytes
      case .members(let members): JSONWriter.bytes(.object(members))
      }
    }

    /// The bytes of a payload that is not merged.
    var size: Int {
      if case .bytes(let bytes) = body { bytes.count } else { 0 }
    }

    /// Whether both are objects to merge, or neither is; only then can one replace the other.
    func isSameKind(as other: Content) -> Bool {
      switch (body, other.body) {
      case (.bytes, .bytes), (.members, .members): true
      case (.bytes, .members), (.members, .bytes): false
      }
    }

    /// What remains when `newer` replaces this content: of two objects, the newest of each member.
    func replaced(by newer: Content) -> Content {
      guard case .members(let old) = body, case .members(let new) = newer.body else {
        return newer
      }
      return Content(
        body: .members(MergedMembers.newest(old, new)),
        trail: RouteTrail.joined(trail, newer.trail),
        stamp: newer.stamp
      )
    }

    /// Whether the content is only words, such as `ON`, and nothing that a person drags.
    ///
    /// `document` is the payload as JSON, if it is JSON and no object to merge.
    func isWords(_ document: JSONValue?) -> Bool {
      switch (body, document) {
      case (.bytes(let bytes), nil): Words.areWords(bytes)
      case (.bytes, .object(let members)?), (.members(let members), _):
        members.allSatisfy { Words.isWord($0.value) }
      case (.bytes, let value?): Words.isWord(value)
      }
    }
  }

  /// Content that has settled and waits for its broker.
  struct Entry {
    var content: Content
    var retain: Bool
    /// Whether it is forwarded unchanged: nothing newer may replace it.
    var isPassed: Bool
    /// Whether it dropped what waited before it.
    var isUrgent = false
    /// Whether a newer message for one of its devices follows it: nothing that is even newer may
    /// join it.
    var isSealed = false
    var readyAt: Moment

    /// Whether `older` can be dropped for this entry: both have settled and are of one kind.
    func canReplace(_ older: Entry) -> Bool {
      !isPassed && !older.isPassed && !older.isSealed && older.content.isSameKind(as: content)
    }
  }
}

/// The gateways that a routed message has passed, separated by spaces.
package enum RouteTrail {
  /// Longer than any real chain of gateways.
  private static let longest = 16

  /// Whether a message with this trail has passed `mark` before, or circulates without end.
  package static func loops(_ trail: String, through mark: String) -> Bool {
    let marks = trail.split(separator: " ")
    return marks.count >= longest || marks.contains { $0 == mark }
  }

  /// Both trails, each mark once.
  package static func joined(_ trail: String, _ other: String) -> String {
    if trail.isEmpty || trail == other { return other }
    var marks = trail.split(separator: " ")
    for mark in other.split(separator: " ") where !marks.contains(mark) { marks.append(mark) }
    return marks.joined(separator: " ")
  }
}

/// Borrowed bytes as text; invalid UTF-8 is repaired.
package enum Text {
  package static func of(_ bytes: Span<UInt8>) -> String {
    unsafe bytes.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
  }
}

/// What counts as a word: a value that is chosen, not dragged.
private enum Words {
  /// Texts with a digit or `#` may be numbers and colors, such as `50%`, `255,0,0` and `#ffaa00`.
  static func areWords(_ bytes: some Sequence<UInt8>) -> Bool {
    bytes.allSatisfy { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) && $0 != 0x23 }
  }

  /// Objects and lists are none: they hold colors.
  static func isWord(_ value: JSONValue) -> Bool {
    switch value {
    case .string(let text): areWords(text.utf8)
    case .boolean, .null: true
    case .integer, .number, .object, .array: false
    }
  }
}

/// Copies and comparisons of borrowed bytes.
package enum Bytes {
  package static func of(_ span: Span<UInt8>) -> [UInt8] {
    unsafe span.withUnsafeBufferPointer { unsafe Array($0) }
  }

  package static func areEqual(_ span: Span<UInt8>, _ bytes: [UInt8]) -> Bool {
    guard span.count == bytes.count else { return false }
    for position in span.indices where span[position] != bytes[position] { return false }
    return true
  }
}

/// Merges the members of JSON objects that follow each other, as `merge: json` does.
package enum MergedMembers {
  /// The ways to write a color as an object.
  ///
  /// Members of one way complete each other, as hue and saturation do; members of two ways
  /// contradict each other.
  ///
  /// Source: Zigbee2MQTT, `converters/toZigbee.ts` and `lib/color.ts`, which read one of these.
  private static let colorForms: [Set<String>] = [
    ["hue", "saturation", "value"], ["hue", "saturation", "brightness"],
    ["hue", "saturation", "lightness"], ["h", "s", "v"], ["h", "s", "b"], ["h", "s", "l"],
    ["x", "y"], ["r", "g", "b"],
  ]
  /// Members that a lamp can obey only one of.
  private static let alternatives: Set<String> = ["color", "color_temp", "color_temp_percent"]

  /// `older` with every member of `newer` in its place, or at the end.
  ///
  /// Parts of a color complete an older color of the same form. A color drops an older color
  /// temperature, and the other way around. A brightness, which turns a lamp on, drops an older
  /// off.
  ///
  /// Source: `light_onoff_brightness` in `converters/toZigbee.ts`: of an off and a brightness in
  /// one message the off counts.
  package static func newest(
    _ older: [JSONValue.Member],
    _ newer: [JSONValue.Member]
  ) -> [JSONValue.Member] {
    var merged = older
    if newer.contains(where: { alternatives.contains($0.name) }) {
      let kept = Set(newer.map(\.name))
      merged.removeAll { alternatives.contains($0.name) && !kept.contains($0.name) }
    }
    if newer.contains(where: { $0.name == "brightness" && ($0.value.double ?? 0) > 0 }) {
      merged.removeAll { $0.name == "state" && $0.value.string?.lowercased() == "off" }
    }
    for member in newer {
      if let place = merged.firstIndex(where: { $0.name == member.name }) {
        merged[place].value = completed(merged[place].value, by: member.value)
      } else {
        merged.append(member)
      }
    }
    return merged
  }

  /// `newer`, with the parts of `older` that it leaves open if both are colors of one form.
  private static func completed(_ older: JSONValue, by newer: JSONValue) -> JSONValue {
    guard case .object(let old) = older, case .object(let new) = newer else { return newer }
    let names = Set((old + new).map(\.name))
    guard colorForms.contains(where: { names.isSubset(of: $0) }) else { return newer }
    return .object(newest(old, new))
  }
}

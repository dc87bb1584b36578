// Settle
// SPDX-License-Identifier: Apache-2.0

package import Configuration
internal import JSON
import Values

/// Takes Settle out from between automations and Zigbee2MQTT again.
///
/// It happens in two parts: first the routes leave the settings, and once Zigbee2MQTT is back at
/// its old base topic, what is left at the broker is removed.
package struct InBetweenUndo: Sendable {
  /// The base topic of Zigbee2MQTT while Settle is in between.
  package let inner: String

  package init(inner: String) { self.inner = inner }

  /// The topics on which something may be left; `prefix` is that of Home Assistant's discovery.
  package func filters(prefix: String) -> [String] {
    ["\(inner)/#", "\(InBetween.announcements(of: inner))/#"]
      + InBetweenProgress(inner: inner, prefix: prefix).filters.filter { $0.hasPrefix(prefix) }
  }

  /// Whether a message is left from the time in between: one of the topics of that time, or an
  /// announcement, such as that of a scene that is gone, whose topics are among them.
  package func isLeft(_ message: Announcement) -> Bool {
    let own = [inner, InBetween.announcements(of: inner)]
    return own.contains { message.topic.hasPrefix($0 + "/") }
      || String(decoding: message.payload, as: UTF8.self).has("\"\(inner)/")
  }

  /// The base topic that the routes in a settings file put back; `nil` if it has none of them.
  private func base(_ elements: [YAMLOutline], _ uses: [InBetweenUse]) -> String? {
    let ending = "/+/set"
    for element in elements where InBetweenUse.topic(element, "to") == "\(inner)\(ending)" {
      if let base = InBetweenUse.topic(element, "from").stem(before: ending) { return base }
    }
    return uses.first { $0.inner == inner }?.base
  }

  /// Removes the routes from a settings file.
  ///
  /// - Returns: The file without them, how many there were, and the base topic that Zigbee2MQTT
  ///   had; `nil` if there are none.
  /// - Throws: ``ConfigurationFailure`` when the file is no YAML.
  package func removed(
    from bytes: [UInt8],
    file: String
  ) throws(ConfigurationFailure) -> (bytes: [UInt8], removed: Int, base: String)? {
    guard let outline = try YAMLOutline.read(bytes, file: file), let entries = outline.entries,
      let entry = entries.first(where: { $0.key == "routes" }),
      case .sequence(let elements) = entry.value.content
    else { return nil }
    let uses = InBetweenUse.all(in: elements)
    guard let base = base(elements, uses) else { return nil }
    // Reports from elsewhere to the same base topic are of no use without its commands.
    let rest = uses.filter { $0.base == base && !$0.isWhole }.map(\.inner)
    let inners = Set([inner] + rest)
    let ours = elements.filter { element in inners.contains { isOurs(element, base, $0) } }
    var kept = bytes
    if ours.count == elements.count, outline.isInline {
      let ranges = entries.map { $0.start..<$0.value.range.upperBound }
      kept.remove(entries.map { $0.key == "routes" }, of: ranges)
    } else if ours.count < elements.count, entry.value.isInline {
      kept.remove(
        elements.map { element in ours.contains { $0 === element } },
        of: elements.map(\.range)
      )
    } else if ours.count == elements.count {
      let start = bytes.startOfLine(entry.start)
      kept.removeSubrange(start..<bytes.endOfLine(after: entry.value.range))
      // The empty line that stood before the section.
      if start >= 2, kept[start - 1] == 0x0A, kept[start - 2] == 0x0A { kept.remove(at: start - 1) }
    } else {
      for element in ours.reversed() {
        let start = bytes.startOfLine(element.range.lowerBound)
        kept.removeSubrange(start..<bytes.endOfLine(after: element.range))
      }
    }
    return (kept, ours.count, base)
  }

  /// Whether a route leads between the two base topics, or carries announcements.
  private func isOurs(_ element: YAMLOutline, _ base: String, _ inner: String) -> Bool {
    let (from, to) = (InBetweenUse.topic(element, "from"), InBetweenUse.topic(element, "to"))
    if from.hasPrefix("\(InBetween.announcements(of: inner))/") { return true }
    return (from.hasPrefix("\(base)/") && to.hasPrefix("\(inner)/"))
      || (from.hasPrefix("\(inner)/") && to.hasPrefix("\(base)/"))
  }

  /// What to do once the routes are removed.
  package func advice(base: String) -> String {
    // Without the routes, no file says which topic it was.
    let again =
      inner == InBetween.standardInner
      ? "this command again" : "this command again, with --in-between=\(inner)"
    return """
      Restart Settle first. Then put these lines back in Zigbee2MQTT's configuration.yaml, and restart it:
        mqtt:
          base_topic: \(base)
        homeassistant:
          discovery_topic: homeassistant
      At last run \(again): it removes what is left at the broker below \(inner).
      """
  }

  /// Why what is left must stay; `nil` if it may be removed.
  package func problem(_ left: [Announcement]) -> String? {
    let state = left.last { $0.topic == "\(inner)/bridge/state" }
    if let state, String(decoding: state.payload, as: UTF8.self).has("online") {
      return
        "Zigbee2MQTT is still at \(inner): put its configuration.yaml back first, and restart it"
    }
    return nil
  }

  /// Why announcements must stay that are left; `nil` if they may be removed.
  ///
  /// Home Assistant would forget an entity whose announcement goes before the next one is there.
  package func problem(ofAnnouncements left: [Announcement]) -> String? {
    let carried = left.filter { !$0.topic.hasPrefix(inner) }
    let isBack = carried.contains {
      !isLeft($0) && String(decoding: $0.payload, as: UTF8.self).has("\"Zigbee2MQTT")
    }
    guard carried.contains(where: isLeft), !isBack else { return nil }
    return "Zigbee2MQTT has not announced its devices again: restart it first, or wait a little"
  }

  /// An announcement that does not exist, and where a gateway in between would carry it.
  package func probe(prefix: String, process: Int32) -> (topic: String, carried: String) {
    let name = "sensor/settle-undo-\(process)/config"
    return ("\(InBetween.announcements(of: inner))/\(name)", "\(prefix)/\(name)")
  }
}

/// How far Zigbee2MQTT has moved behind Settle, by what the broker retains.
package struct InBetweenProgress: Sendable {
  private let inner: String
  private let prefix: String

  /// `inner` is the new base topic of Zigbee2MQTT, `prefix` that of Home Assistant's discovery.
  package init(inner: String, prefix: String) {
    self.inner = inner
    self.prefix = prefix
  }

  /// The topic that exists once Zigbee2MQTT has moved.
  package var bridgeTopic: String { "\(inner)/bridge/state" }

  /// The topic filters of what Zigbee2MQTT announces to Home Assistant, before and after Settle.
  package var filters: [String] {
    [InBetween.announcements(of: inner), prefix].flatMap {
      ["\($0)/+/+/config", "\($0)/+/+/+/config"]
    }
  }

  /// Whether Zigbee2MQTT has moved.
  package func hasMoved(_ retained: [Announcement]) -> Bool {
    retained.last { $0.topic == bridgeTopic }.map { !$0.payload.isEmpty } ?? false
  }

  /// What works and what is missing, once Zigbee2MQTT has moved from `base`.
  package func text(_ retained: [Announcement], base: String) -> String {
    let own = InBetween.announcements(of: inner)
    let topics = Set(retained.filter { !$0.payload.isEmpty }.map(\.topic))
    let announced = topics.filter { $0.hasPrefix("\(own)/") }
    // Groups and the bridge have their old topics, which name the base topic.
    let (old, new) = (Zigbee2MQTTReader.encoded(base), Zigbee2MQTTReader.encoded(inner))
    let carried = announced.count { topic in
      let rest = topic.dropFirst(own.count)
      return topics.contains(prefix + rest.replaced("/\(new)_", by: "/\(old)_"))
    }
    let isOffline = retained.last { $0.topic == bridgeTopic }.map(Self.isOffline) ?? false
    let first = "Zigbee2MQTT has moved to \(inner)" + (isOffline ? ", and is offline." : ".")
    if announced.isEmpty {
      return """
        \(first) It announces nothing to \(own) yet.
        If it announces devices to Home Assistant, change in its configuration.yaml, and restart it:
          homeassistant:
            discovery_topic: \(own)
            status_topic: \(prefix)/status
        """
    }
    let words = announced.count == 1 ? "1 announcement" : "\(announced.count) announcements"
    guard carried < announced.count else {
      return "\(first) Its \(words) to Home Assistant: all carried from \(own) to \(prefix)."
    }
    return """
      \(first) Of its \(words) to Home Assistant, \(announced.count - carried) are not carried \
      from \(own) to \(prefix).
      Restart the gateway: it reads routes only when it starts.
      """
  }

  /// Zigbee2MQTT 1.x may report the plain word.
  private static func isOffline(_ bridge: Announcement) -> Bool {
    String(decoding: bridge.payload, as: UTF8.self).has("offline")
  }
}

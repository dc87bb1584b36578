// Settle
// SPDX-License-Identifier: Apache-2.0

package import Configuration
internal import Devices
internal import JSON

/// Routes that put Settle between automations and Zigbee2MQTT.
///
/// Automations continue to publish to `BASE/NAME/set`, and Zigbee2MQTT moves to another base topic.
/// Settle debounces commands and forwards reports immediately.
package struct InBetween: Sendable {
  /// The new base topic where nobody chooses another.
  package static let standardInner = "zigbee2mqtt-direct"

  /// The base topic that automations use.
  package let base: String
  /// The new base topic of Zigbee2MQTT.
  package let inner: String
  private let prefix: String
  /// The entries of `routes:`, in order.
  private let routes: [JSONValue]
  /// The devices and groups without routes, and why.
  package let diagnostics: [ImportDiagnostic]

  /// The topics on which Zigbee2MQTT reports its own state.
  private static let bridge = [
    "info", "devices", "groups", "definitions", "extensions", "converters", "logging",
    "event", "health",
  ]
  /// Members without an absolute value, which must not be debounced.
  ///
  /// Source: `converters/toZigbee.ts` of zigbee-herdsman-converters.
  private static let relative =
    ["brightness", "color_temp", "hue", "saturation"].flatMap { ["\($0)_step", "\($0)_move"] }
    + ["brightness_step_onoff", "brightness_move_onoff", "effect", "alert", "identify"]
    + ["recall", "store", "add", "rename", "remove", "remove_all"].map { "scene_\($0)" }
    + ["read", "write", "command", "zclcommand"]

  /// Creates routes for the devices and groups below `base`; `nil` if none are announced.
  ///
  /// `prefix` is that of Home Assistant's discovery topics.
  package init?(_ announcements: [Announcement], base: String, inner: String, prefix: String) {
    var names: [String] = []
    var diagnostics: [ImportDiagnostic] = []
    func leaveOut(_ name: String, _ reason: String) {
      diagnostics.append(ImportDiagnostic(.leftOut, PlainText.clean(name, limit: 80), reason))
    }
    var endpoints: [String: Set<String>] = [:]
    for list in ["devices", "groups"] {
      let topic = "\(base)/bridge/\(list)"
      guard let message = announcements.last(where: { $0.topic == topic }),
        let json = try? message.json()
      else { continue }
      for entry in json.elements ?? [] {
        guard let name = entry["friendly_name"]?.string else { continue }
        if let problem = TopicName.problem("\(base)/\(name)") {
          leaveOut(name, problem)
          continue
        }
        if let input = Self.inputs.first(where: { Topic.matches(filter: $0, name: name) }) {
          leaveOut(name, "reports on '\(name)' would count as commands, which '\(input)' matches")
          continue
        }
        names.append(name)
        for expose in entry["definition"]?.elements("exposes") ?? [] {
          for part in [expose] + (expose.elements("features") ?? []) {
            guard let endpoint = part["endpoint"]?.string,
              TopicName.problem(endpoint) == nil
            else { continue }
            endpoints[name, default: []].insert(endpoint)
          }
        }
      }
    }
    guard !names.isEmpty else { return nil }
    self.base = base
    self.inner = inner
    self.prefix = prefix
    let carried: JSONValue = .object([
      "from": .string("\(Self.announcements(of: inner))/#"), "to": .string("\(prefix)/#"),
      "policy": "none", "announcements": true,
    ])
    routes =
      Self.routes(base: base, inner: inner, names: names, endpoints: endpoints) + [carried]
    self.diagnostics = diagnostics
  }

  /// What commands are published to, below the base topic; a route that reports there would loop.
  private static let inputs = ["+/set", "+/set/+", "+/get", "bridge/request/#"]

  /// Where Zigbee2MQTT announces its devices while Settle is in between.
  static func announcements(of inner: String) -> String { inner + discovery }

  /// The base topic of Zigbee2MQTT whose announcements a route carries; `nil` for other routes.
  static func inner(ofAnnouncements from: String) -> String? { from.stem(before: discovery + "/#") }

  private static let discovery = "-discovery"

  private static func routes(
    base: String,
    inner: String,
    names: [String],
    endpoints: [String: Set<String>]
  ) -> [JSONValue] {
    // An endpoint may also be a part of the member's name, such as state_left.
    let suffixes = [""] + Set(endpoints.values.joined()).sorted().map { "_\($0)" }
    func pointer(_ name: String) -> String { JSONPointer(tokens: [name]).text }
    func state(_ word: JSONValue) -> [JSONValue] {
      [word] + suffixes.map { .object([.init(pointer("state\($0)"), word)]) }
    }
    // An endpoint may end a member as another member ends: `scene_remove_all`.
    let members = suffixes.flatMap { suffix in relative.map { pointer("\($0)\(suffix)") } }
    var seen: Set<String> = []
    let passing =
      state("TOGGLE") + members.filter { seen.insert($0).inserted }.map { .string($0) }
    func debounced(_ tail: String) -> JSONValue {
      .object([
        "from": .string("\(base)/\(tail)"), "to": .string("\(inner)/\(tail)"), "merge": "json",
        "urgent": .array(state("STOP")), "pass": .array(passing), "word_delay": "20ms",
      ])
    }
    func direct(_ from: String, _ to: String, _ tail: String) -> JSONValue {
      .object([
        "from": .string("\(from)/\(tail)"), "to": .string("\(to)/\(tail)"), "policy": "none",
      ])
    }
    func commands(to name: String) -> [JSONValue] {
      [debounced("\(name)/set")] + ["set/+", "get"].map { direct(base, inner, "\(name)/\($0)") }
    }
    // Wildcards for names with a slash would overlap the bridge's own topics.
    let nested = Set(names).filter { $0.contains("/") }.sorted()
    let parts = endpoints.keys.sorted().flatMap { name in
      endpoints[name, default: []].sorted().map { "\(name)/\($0)" }
    }
    var routes = (["+"] + nested + parts).flatMap { commands(to: $0) }
    for name in ["+"] + nested {
      routes += [direct(inner, base, name), direct(inner, base, "\(name)/availability")]
    }
    // Once Settle is gone, nothing carries commands, and the bridge does not say online.
    routes.append(
      .object([
        "from": .string("\(inner)/bridge/state"), "to": .string("\(base)/bridge/state"),
        "policy": "none", "will": #"{"state":"offline"}"#,
      ])
    )
    routes += bridge.map { direct(inner, base, "bridge/\($0)") }
    routes.append(direct(base, inner, "bridge/request/#"))
    routes.append(direct(inner, base, "bridge/response/#"))
    return routes
  }

  /// Instructions for the change in Zigbee2MQTT's configuration.
  package var advice: String {
    """
    Three lines to change in Zigbee2MQTT's configuration.yaml:
      mqtt:
        base_topic: \(inner)
      homeassistant:
        discovery_topic: \(Self.announcements(of: inner))
        status_topic: \(prefix)/status
    The last two only if it announces devices to Home Assistant. Restart Settle first, then Zigbee2MQTT.
    Automations and dashboards keep using \(base)/…, and Home Assistant keeps its entities.
    """
  }

  /// The `routes:` section for a settings file.
  package var section: String {
    "routes:\n" + routes.map { "  - \(YAMLText.flow($0))\n" }.joined()
  }

  /// The number of routes.
  package var count: Int { routes.count }

  /// Adds the routes to a settings file and keeps its existing ones.
  ///
  /// - Throws: ``ConfigurationFailure`` when its `routes:` is written elsewhere in the file.
  package func added(
    to bytes: [UInt8],
    file: String
  ) throws(ConfigurationFailure) -> (bytes: [UInt8], added: Int) {
    let outline = try YAMLOutline.read(bytes, file: file)
    let lacksEnd = bytes.last.map { $0 != 0x0A } ?? false
    var edits = TextEdits()
    guard let present = outline?["routes"] else {
      guard let outline, let entries = outline.entries, outline.isInline else {
        let lead = (lacksEnd ? "\n" : "") + (bytes.isEmpty ? "" : "\n")
        return (bytes + Array((lead + section).utf8), count)
      }
      // Settings in braces, such as JSON.
      let last = entries.last?.value.range.upperBound
      let entry = "\n\"routes\": [\(Self.flow(routes))\n]"
      edits.insert(last == nil ? entry : "," + entry, at: last ?? outline.range.lowerBound + 1)
      return (edits.applied(to: bytes), count)
    }
    guard case .sequence(let elements) = present.content, !present.isAlias else {
      // The range of an alias begins after its asterisk.
      let place = bytes.position(of: present.range.lowerBound - (present.isAlias ? 1 : 0))
      throw ConfigurationFailure(problems: [
        ConfigurationProblem(
          file: file,
          line: place.line,
          column: place.column,
          message: "routes: the list must be written here, so that routes can be added"
        )
      ])
    }
    let known = elements.map { InBetweenUse.topic($0, "from") }
    let missing = routes.filter { !known.contains($0["from"]?.string ?? "") }
    guard !missing.isEmpty else { return (bytes, 0) }
    guard let first = elements.first, let last = elements.last, !present.isInline else {
      let text = Self.flow(missing)
      let end = elements.last?.range.upperBound
      edits.insert(end == nil ? text : "," + text, at: end ?? present.range.lowerBound + 1)
      return (edits.applied(to: bytes), missing.count)
    }
    let margin = bytes[bytes.startOfLine(first.range.lowerBound)...].prefix { $0 == 0x20 }
    let end = bytes[last.range.upperBound...].firstIndex(of: 0x0A).map { $0 + 1 } ?? bytes.count
    let indent = String(decoding: margin, as: UTF8.self)
    let lines = missing.map { "\(indent)- \(YAMLText.flow($0))\n" }.joined()
    edits.insert((end == bytes.count && lacksEnd ? "\n" : "") + lines, at: end)
    return (edits.applied(to: bytes), missing.count)
  }

  /// Routes as elements of a list in brackets, each on a line of its own; they are JSON too.
  private static func flow(_ routes: [JSONValue]) -> String {
    routes.map { "\n  \(JSONWriter.text($0))" }.joined(separator: ",")
  }
}

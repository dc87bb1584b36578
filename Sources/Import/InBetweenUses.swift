// Settle
// SPDX-License-Identifier: Apache-2.0

package import Configuration
internal import JSON
internal import Values

/// Chooses the base topic of Zigbee2MQTT for `settle import --in-between`, by the routes that the
/// settings have already.
package struct InBetweenUses: Sendable {
  /// Why there is no choice.
  package struct Refusal: Error, Hashable {
    package let reason: String
    /// Whether an option can choose among several.
    package var isAmbiguous = false
  }

  private let all: [InBetweenUse]
  /// The settings file.
  private let file: String

  /// No routes.
  package init() {
    all = []
    file = ""
  }

  /// The routes in the settings `bytes`.
  ///
  /// - Throws: ``ConfigurationFailure`` when they are no YAML.
  package init(in bytes: [UInt8], file: String) throws(ConfigurationFailure) {
    let routes = try YAMLOutline.read(bytes, file: file)?["routes"]
    if case .sequence(let elements)? = routes?.content {
      all = InBetweenUse.all(in: elements)
    } else {
      all = []
    }
    self.file = file
  }

  /// The topic that Zigbee2MQTT moves to or has moved to; `name` is empty where nobody chose one.
  ///
  /// - Throws: ``Refusal`` when there are several.
  package func inner(named name: String, base: String?) throws(Refusal) -> String {
    guard name.isEmpty else { return name }
    return try only(of: whole(base), "choose one with --base") ?? InBetween.standardInner
  }

  /// The topic whose routes are removed; `name` is empty where nobody named one.
  ///
  /// - Throws: ``Refusal`` when there are several.
  package func undone(named name: String, base: String?) throws(Refusal) -> String {
    guard name.isEmpty else { return name }
    if let inner = try only(of: whole(base), "name one, as in --in-between=TOPIC --undo") {
      return inner
    }
    let rest = all.first { base == nil || $0.base == base }
    return rest?.inner ?? InBetween.standardInner
  }

  /// Whether Zigbee2MQTT has this base topic while Settle is in between.
  package func hasInner(_ topic: String) -> Bool { all.contains { $0.inner == topic } }

  /// Why there can be no routes between two base topics; `nil` if there can.
  package func problem(base: String, inner: String) -> String? {
    if let use = whole(base).first(where: { $0.inner != inner }) {
      let option = "--in-between=\(Excerpt.of(use.inner))"
      return "\(file) has routes from '\(Excerpt.of(base))' to '\(Excerpt.of(use.inner))' already;"
        + " name that topic, as in \(option), or remove them first with \(option) --undo"
    }
    return all.first { $0.inner == inner && $0.base != base }.map { use in
      "\(file) has routes from '\(Excerpt.of(use.base))' to '\(Excerpt.of(inner))' already;"
        + " name another topic, as in --in-between=TOPIC"
    }
  }

  /// That only other topics have routes; `nil` if there are none.
  package func advice(insteadOf inner: String) -> String? {
    guard let use = all.first else { return nil }
    return "\(file) has no routes to '\(Excerpt.of(inner))', but to '\(Excerpt.of(use.inner))';"
      + " --in-between=\(Excerpt.of(use.inner)) --undo removes them"
  }

  private func whole(_ base: String?) -> [InBetweenUse] {
    all.filter { $0.isWhole && (base == nil || $0.base == base) }
  }

  private func only(of uses: [InBetweenUse], _ advice: String) throws(Refusal) -> String? {
    guard uses.count > 1 else { return uses.first?.inner }
    let list = uses.map { "'\(Excerpt.of($0.base))' to '\(Excerpt.of($0.inner))'" }
    throw Refusal(
      reason: "\(file) has routes from \(list.joined(separator: ", and from ")); \(advice)",
      isAmbiguous: true
    )
  }
}

/// Where the routes of a settings file put Settle in between, as ``InBetween`` writes them.
struct InBetweenUse: Hashable, Sendable {
  /// The base topic that automations use.
  let base: String
  /// The base topic of Zigbee2MQTT.
  let inner: String
  /// Whether the routes carry commands too; reports alone are the rest of other routes.
  let isWhole: Bool

  /// The uses in the elements of `routes:`, in their order.
  ///
  /// The route of announcements tells them from routes that a person has written.
  static func all(in elements: [YAMLOutline]) -> [InBetweenUse] {
    let routes = elements.map { (from: topic($0, "from"), to: topic($0, "to"), element: $0) }
    return routes.compactMap { route in
      guard let inner = InBetween.inner(ofAnnouncements: route.from),
        route.element["announcements"]?.json == true
      else { return nil }
      if let command = routes.first(where: { $0.to == "\(inner)/+/set" }),
        let base = command.from.stem(before: "/+/set")
      {
        return InBetweenUse(base: base, inner: inner, isWhole: true)
      }
      guard let report = routes.first(where: { $0.from == "\(inner)/+" }),
        let base = report.to.stem(before: "/+")
      else { return nil }
      return InBetweenUse(base: base, inner: inner, isWhole: false)
    }
  }

  /// The topic of one end of a route; an empty text if it has none.
  static func topic(_ element: YAMLOutline, _ end: String) -> String {
    let value = element[end]?.json
    return value?.string ?? value?["topic"]?.string ?? ""
  }
}

extension String {
  /// The text before `tail`; `nil` if it ends otherwise.
  func stem(before tail: String) -> String? {
    hasSuffix(tail) ? String(dropLast(tail.count)) : nil
  }
}

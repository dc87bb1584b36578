// Settle
// SPDX-License-Identifier: Apache-2.0

package import Configuration
internal import JSON

/// Where the routes of a settings file put Settle in between, as ``InBetween`` writes them.
package struct InBetweenUse: Hashable, Sendable {
  /// The base topic that automations use.
  package let base: String
  /// The base topic of Zigbee2MQTT.
  package let inner: String
  /// Whether the routes carry commands too; reports alone are the rest of other routes.
  package let isWhole: Bool

  /// The uses in a settings file, in the order of its routes.
  ///
  /// - Throws: ``ConfigurationFailure`` when the file is no YAML.
  package static func all(
    in bytes: [UInt8],
    file: String
  ) throws(ConfigurationFailure) -> [InBetweenUse] {
    guard let routes = try YAMLOutline.read(bytes, file: file)?["routes"],
      case .sequence(let elements) = routes.content
    else { return [] }
    return all(in: elements)
  }

  /// The uses in the elements of `routes:`.
  ///
  /// The route of announcements tells them from routes that a person has written.
  static func all(in elements: [YAMLOutline]) -> [InBetweenUse] {
    let routes = elements.map { (from: topic($0, "from"), to: topic($0, "to"), element: $0) }
    return routes.compactMap { route in
      guard let inner = InBetween.inner(ofAnnouncements: route.from),
        route.element["announcements"]?.json == true
      else { return nil }
      if let command = routes.first(where: { $0.to == "\(inner)/+/set" }),
        let base = stem(of: command.from, before: "/+/set")
      {
        return InBetweenUse(base: base, inner: inner, isWhole: true)
      }
      guard let report = routes.first(where: { $0.from == "\(inner)/+" }),
        let base = stem(of: report.to, before: "/+")
      else { return nil }
      return InBetweenUse(base: base, inner: inner, isWhole: false)
    }
  }

  /// The topic of one end of a route; an empty text if it has none.
  static func topic(_ element: YAMLOutline, _ end: String) -> String {
    let value = element[end]?.json
    return value?.string ?? value?["topic"]?.string ?? ""
  }

  private static func stem(of topic: String, before tail: String) -> String? {
    topic.hasSuffix(tail) ? String(topic.dropLast(tail.count)) : nil
  }
}

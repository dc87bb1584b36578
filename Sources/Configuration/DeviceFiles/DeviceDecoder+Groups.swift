// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
internal import Values

/// Reads `groups:` at the top level of device files, once all devices are known.
extension DeviceDecoder {
  /// The names at the top level of a device file that are no devices.
  static let sections = ["groups", "scenes"]

  /// Collects the entries of `groups:` or `scenes:` of one file.
  mutating func collect(_ section: YAMLNode.Pair) {
    if section.value.isNull { return }
    guard let pairs = section.value.pairs else {
      let example = section.key == "groups" ? "'downstairs:'" : "'evening:'"
      return problems.add(section.value, section.key, expected: "names such as \(example)")
    }
    if section.key == "groups" { groupNodes += pairs } else { sceneNodes += pairs }
  }

  /// Adds the groups of all files to the devices.
  mutating func resolveGroups() {
    let single = devices
    let names = Set(groupNodes.map(\.key))
    for pair in groupNodes {
      let isValid = checkName(pair, of: "group")
      guard let group = group(pair, of: single, groups: names), isValid else { continue }
      add(group)
    }
  }

  /// Whether a group's or a scene's name is allowed and not in use.
  mutating func checkName(_ pair: YAMLNode.Pair, of kind: String) -> Bool {
    if let problem = Identifiers.problem(inDevice: pair.key, called: "name of a \(kind)") {
      problems.add(pair.keyPosition, problem.message, suggestion: problem.suggestion)
      return false
    }
    let scope = kind == "scene" ? "scene \(pair.key)" : pair.key
    if let first = definition(of: scope) {
      let other = groupNodes.contains { $0.keyPosition == first } ? "group" : "device"
      problems.add(
        pair.keyPosition,
        "'\(pair.key)' is already the name of a \(kind == "scene" ? "scene" : other), defined at "
          + first.text
      )
      return false
    }
    define(scope, at: pair.keyPosition)
    return true
  }

  private mutating func group(
    _ pair: YAMLNode.Pair,
    of devices: [DeviceInstance],
    groups: Set<String>
  ) -> Device? {
    let what = "group '\(Excerpt.of(pair.key))'"
    guard let section = Section(pair.value, .group, problems, what: what) else { return nil }
    let members = members(section, of: devices, groups: groups, what: what)
    let name = section.text("name") ?? pair.key
    let area = section.text("area")
    let isOnPanel = section.flag("panel") ?? true
    let details = DetailsReader.details(section)
    guard let members else {
      GroupTopicReader.checkAlone(section, what: what, with: self)
      return nil
    }
    let shared = DeviceGroup.sharedProperties(of: members)
    guard !shared.isEmpty else {
      if members.contains(where: { lacksProperties($0) }) { return nil }
      let has = members.prefix(3).map { device in
        "\(device.id) has \(Section.list(device.properties.map(\.id)))"
      }
      problems.add(
        pair.keyPosition,
        "\(what): its members share no property that can be set; \(has.joined(separator: "; "))"
      )
      return nil
    }
    warnAboutRanges(shared, of: members, what: what, at: pair.keyPosition)
    var group = Device(id: pair.key, name: name, properties: shared)
    group.area = area
    group.isOnPanel = isOnPanel
    group.details = details
    group.group = DeviceGroup(members: members.map(\.id))
    group.options = members[0].options.filter { option in
      members.allSatisfy { $0.options.contains(option) }
    }
    GroupTopicReader(section: section, members: members, what: what, problems: problems)
      .complete(&group, with: self)
    return group
  }

  /// Warns of numbers that mean something else to each member: 50 of 254, and 50 of 100.
  private func warnAboutRanges(
    _ shared: [Property],
    of members: [Device],
    what: String,
    at position: SourcePosition
  ) {
    for property in shared {
      let rules = members.compactMap { member in
        member.properties.first { $0.id == property.id }?.kind.numberRule.map { (member.id, $0) }
      }
      guard let first = rules.first,
        let other = rules.first(where: { !$0.1.countsLike(first.1) })
      else { continue }
      problems.warn(
        position,
        "\(what): '\(property.id)' of \(first.0) is \(first.1.allowed), and of \(other.0) "
          + "\(other.1.allowed); all members get the same number, also for a percentage, which is "
          + "of what these ranges have in common"
      )
    }
  }

  /// The members, each once and in order; `nil` after a mistake.
  private func members(
    _ section: Section,
    of devices: [DeviceInstance],
    groups: Set<String>,
    what: String
  ) -> [Device]? {
    guard section["members"] != nil else {
      section.missing("members", "\(what) needs devices, such as [desk-lamp, \"kitchen-*\"]")
      return nil
    }
    guard let words = section.words("members") else { return nil }
    let ids = devices.map(\.id)
    var found: [Device] = []
    var names: Set<String> = []
    var isValid = true
    func add(_ device: DeviceInstance) {
      if names.insert(device.id).inserted { found.append(device.device) }
    }
    func refuse(_ word: YAMLNode, _ message: String, suggestion: String? = nil) {
      isValid = false
      problems.add(word.position, "members: \(message)", suggestion: suggestion)
    }
    for (text, node) in words {
      let pattern = Pattern(text)
      if !pattern.isLiteral {
        let matching = devices.filter { pattern.matches($0.id) }
        if matching.isEmpty { refuse(node, "no device matches '\(Excerpt.of(text))'") }
        matching.forEach(add)
      } else if let device = devices.first(where: { $0.id == text }) {
        add(device)
      } else if groups.contains(text) {
        refuse(node, "'\(text)' is a group; a group has devices as its members, not groups")
      } else if definition(of: text) == nil {
        refuse(
          node,
          "no device '\(Excerpt.of(text))'",
          suggestion: Suggestion.nearest(to: text, in: ids)
        )
      } else {
        isValid = false  // The device has a mistake that is reported already.
      }
    }
    if words.isEmpty, let node = section["members"] {
      refuse(node, "the list is empty; \(what) needs at least one device")
    }
    return isValid ? found : nil
  }
}

extension NumberRule {
  /// Whether a number means the same by both rules: they have the same range, or count in the same
  /// unit.
  fileprivate func countsLike(_ other: NumberRule) -> Bool {
    if range == nil || other.range == nil || range == other.range { return true }
    return unit != nil && unit == other.unit || display != nil && display == other.display
  }
}

/// Reads `scenes:` at the top level of device files, once all devices and groups are known.
extension DeviceDecoder {
  /// The scenes of all files, in order.
  mutating func scenes() -> [Scene] {
    var scenes: [Scene] = []
    for pair in sceneNodes {
      let isValid = checkName(pair, of: "scene")
      guard let scene = scene(pair), isValid else { continue }
      scenes.append(scene)
    }
    return scenes
  }

  private func scene(_ pair: YAMLNode.Pair) -> Scene? {
    let what = "scene '\(Excerpt.of(pair.key))'"
    guard let entries = pair.value.pairs, !entries.isEmpty else {
      let example = "{desk-lamp: {brightness: 80}}"
      problems.add(pair.value, what, expected: "devices and their values, such as \(example)")
      return nil
    }
    var parts: [Scene.Part] = []
    for entry in entries { parts += self.parts(entry, of: what) }
    return Scene(id: pair.key, parts: parts)
  }

  /// The values of one device or group; a group's are those of its members.
  private func parts(_ entry: YAMLNode.Pair, of what: String) -> [Scene.Part] {
    guard let device = devices.first(where: { $0.id == entry.key })?.device else {
      // A device with a mistake is reported already.
      if definition(of: entry.key) == nil {
        problems.add(
          entry.keyPosition,
          "\(what): no device '\(Excerpt.of(entry.key))'",
          suggestion: Suggestion.nearest(to: entry.key, in: devices.map(\.id))
        )
      }
      return []
    }
    guard let values = entry.value.pairs, !values.isEmpty else {
      let example = "{\(device.properties.first?.id ?? "power"): …}"
      problems.add(entry.value, what, expected: "values of \(device.id), such as \(example)")
      return []
    }
    return values.compactMap { part($0, of: device, in: what) }
  }

  private func part(
    _ pair: YAMLNode.Pair,
    of device: Device,
    in what: String
  ) -> Scene.Part? {
    let found = device.properties.first { $0.id == pair.key || $0.aliases.contains(pair.key) }
    guard let property = found else {
      if lacksProperties(device) { return nil }
      problems.add(
        pair.keyPosition,
        "\(what): device '\(device.id)' has no property '\(Excerpt.of(pair.key))'; it has: "
          + Section.list(device.properties.map(\.id)),
        suggestion: Suggestion.nearest(to: pair.key, in: device.properties.map(\.id))
      )
      return nil
    }
    guard let json = pair.value.json(problems) else { return nil }
    do throws(ValidationError) {
      return Scene.Part(key: "\(device.id)/\(property.id)", value: try property.value(from: json))
    } catch {
      problems.add(pair.value.position, "\(what): \(property.id): \(error)")
      return nil
    }
  }
}

/// What a device was read from: its entry in a file, and the item of a template.
struct DeviceEntry {
  let pair: YAMLNode.Pair
  var item: String?

  /// The device as it would be with another `topic`; `nil` after a mistake, which goes to the
  /// decoder's problems.
  func device(withTopic topic: YAMLNode, _ decoder: DeviceDecoder) -> Device? {
    var pairs = pair.value.pairs ?? []
    pairs.removeAll { $0.key == "topic" }
    pairs.append(.init(key: "topic", keyPosition: topic.position, value: topic))
    let node = YAMLNode(.mapping(pairs), at: pair.value.position)
    var decoder = decoder
    let device = decoder.device(
      .init(key: pair.key, keyPosition: pair.keyPosition, value: node),
      count: 1
    )
    guard let item else { return device }
    return device.map { TemplateDevices(DeviceTemplate($0)).device(item: item).device }
  }
}

/// Devices that appear with their first message on a topic: `from:` in a device file.
package struct DeviceSource: Hashable, Sendable {
  /// A topic filter with `+` for what differs from device to device.
  package let filter: String
  package let template: DeviceTemplate

  /// The bytes before the first wildcard and after the last.
  private let ends: [[UInt8]]

  package init(filter: String, template: DeviceTemplate) {
    self.filter = filter
    self.template = template
    let parts = filter.utf8.split(separator: UInt8(ascii: "+"), omittingEmptySubsequences: false)
    ends = [parts.first, parts.last].map { Array($0 ?? "".utf8[...]) }
  }

  /// Whether the filter may match a topic, from its first and last bytes.
  package func mayMatch(_ topic: Span<UInt8>) -> Bool {
    guard topic.count >= ends[0].count + ends[1].count else { return false }
    for place in ends[0].indices where topic[place] != ends[0][place] { return false }
    let start = topic.count - ends[1].count
    for place in ends[1].indices where topic[start + place] != ends[1][place] { return false }
    return true
  }

  /// What fills the placeholders of the device that a topic names; `nil` for a foreign topic.
  package func fillings(from topic: String) -> [Int: DeviceTemplate.Filling]? {
    guard let captures = Topic.captures(filter: filter, name: topic) else { return nil }
    return [Int: DeviceTemplate.Filling](
      uniqueKeysWithValues: captures.enumerated().map { ($0 + 1, DeviceTemplate.Filling($1)) }
    )
  }

  /// Why no device can have the identifier that `fillings` make; `nil` if one can.
  package func problem(with fillings: [Int: DeviceTemplate.Filling]) -> String? {
    if fillings.values.contains(where: \.text.isEmpty) { return "a level of the topic is empty" }
    return Identifiers.problem(inDevice: template.id(fillings))?.message
  }
}

/// Reads `device:`, who made a device and by which identifiers others announce it.
enum DetailsReader {
  static func details(_ section: Section) -> DeviceDetails? {
    guard let fields = section.nested("device", .details) else { return nil }
    var details = DeviceDetails()
    details.manufacturer = fields.text("manufacturer")
    details.model = fields.text("model")
    details.url = url(fields)
    details.identifiers = fields.words("identifiers")?.map(\.text) ?? []
    return details
  }

  private static func url(_ fields: Section) -> String? {
    let expected = "an address such as http://192.168.1.5 or https://example.org/lamp"
    guard let node = fields["url"], let text = fields.text("url", expected: expected) else {
      return nil
    }
    guard WebAddress.isValid(text) else {
      return fields.reject(
        node,
        "url",
        expected: expected,
        suggestion: !text.has("://") && WebAddress.isValid("http://\(text)")
          ? "http://\(text)" : nil
      )
    }
    return text
  }
}

/// The rules for addresses that people open in a browser.
package enum WebAddress {
  /// Whether `text` is an `http` or `https` address with a host, as Home Assistant requires.
  package static func isValid(_ text: String) -> Bool {
    let schemes = ["http://", "https://"]
    guard let scheme = schemes.first(where: { text.hasPrefix($0) }) else { return false }
    let host = text.dropFirst(scheme.count).prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    return !host.isEmpty && !text.unicodeScalars.contains { $0.value <= 0x20 || $0.value == 0x7F }
  }
}

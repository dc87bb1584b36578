// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
import Values

/// Reads `availability:`, the topics that report whether a device is online.
struct AvailabilityReader {
  let placeholders: Placeholders
  let problems: Problems

  /// Reads one mapping or a list of mappings; `none` means no sources.
  func sources(_ section: Section) -> [AvailabilitySource] {
    guard let node = section["availability"], node.text != "none" else { return [] }
    return (node.elements ?? [node]).compactMap { source($0) }
  }

  private func source(_ node: YAMLNode) -> AvailabilitySource? {
    guard let section = Section(node, .availability, problems, what: "availability") else {
      return nil
    }
    let pointer = section.pointer("value", placeholders)
    let online = scalar(section, "online", else: "online")
    let offline = scalar(section, "offline", else: "offline")
    guard let topic = section.topic("topic", placeholders), let online, let offline else {
      return nil
    }
    if online.isSameScalar(as: offline) {
      problems.add(section.position, "availability: 'online' and 'offline' are the same")
    }
    return AvailabilitySource(
      topic: topic,
      value: pointer ?? .whole,
      online: online,
      offline: offline
    )
  }

  private func scalar(
    _ section: Section,
    _ key: String,
    else standard: JSONValue
  ) -> JSONValue? {
    guard let node = section[key] else { return standard }
    let words = (node.elements ?? [node]).compactMap(\.scalarJSON).filter { $0 != .null }
    guard !words.isEmpty, words.count == node.elements?.count ?? 1 else {
      return section.reject(
        node,
        key,
        expected: "a word, number, true or false, or a list of them"
      )
    }
    return words.count == 1 ? words[0] : .array(words)
  }
}

extension Section {
  /// A required topic name with its placeholders expanded.
  func topic(_ key: String, _ placeholders: Placeholders) -> String? {
    guard let node = self[key] else {
      missing(key, "the topic's name is needed")
      return nil
    }
    guard let text = text(key, expected: "a topic"),
      let topic = placeholders.expand(text, at: node.position)
    else { return nil }
    if let problem = Topic.problem(inName: topic) {
      problems.add(node.position, "\(key): \(problem)")
      return nil
    }
    return topic
  }

  /// A JSON Pointer with its placeholders expanded.
  func pointer(_ key: String, _ placeholders: Placeholders?) -> JSONPointer? {
    guard let node = self[key] else { return nil }
    guard let text = node.text, !node.isNull || text.isEmpty else {
      return reject(node, key, expected: "a JSON Pointer such as /state")
    }
    guard let expanded = placeholders.map({ $0.expand(text, at: node.position) }) ?? text else {
      return nil
    }
    guard let pointer = JSONPointer(expanded) else {
      return reject(
        node,
        key,
        expected: "a JSON Pointer such as /state, or \"\" for the whole payload",
        suggestion: JSONPointer("/\(expanded)") == nil ? nil : "/\(expanded)"
      )
    }
    return pointer
  }
}

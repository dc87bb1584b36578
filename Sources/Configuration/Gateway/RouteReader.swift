// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import LastOut
import Routing
internal import Values

/// Reads one entry of `routes:`.
struct RouteReader {
  let brokers: [String]
  let problems: Problems

  func route(_ node: YAMLNode) -> (route: RouteConfiguration, positions: RoutePositions)? {
    guard let fields = Section(node, .route, problems, what: "route") else { return nil }
    let from = end(fields, "from")
    let to = end(fields, "to")
    var policy: Policy? = .init(delay: .milliseconds(300), maxWait: .seconds(2))
    if let node = fields["policy"] {
      if node.text == "none" {
        policy = nil
      } else if let stated = PolicyFields(node, problems) {
        policy = policy.map { stated.applied(to: $0) }
      }
    }
    let merge = fields.choice("merge", of: ["json", "none"])
    let qos = fields.integer("qos", in: 0...2)
    let patterns = MessagePatternReader(fields: fields)
    let pass = patterns.patterns("pass")
    let urgent = patterns.patterns("urgent", without: pass)
    let wordDelay = fields.duration("word_delay")
    let announces = fields.flag("announcements")
    let will = fields.text("will")
    if let node = fields["announcements"], announces == true, policy != nil {
      problems.add(node.position, "announcements: needs 'policy: none', for none may be left out")
    }
    let hasWildcard = to.map { Topic.hasWildcard($0.end.topic) } ?? false
    if let node = fields["will"], policy != nil || hasWildcard {
      problems.add(node.position, "will: needs 'policy: none', and a 'to' without wildcards")
    }
    if policy == nil {
      if let node = fields["merge"], merge == "json" {
        problems.add(node.position, "merge: with 'policy: none' nothing waits, so nothing merges")
      }
      for key in ["urgent", "word_delay"] {
        guard let node = fields[key] else { continue }
        problems.add(node.position, "\(key): with 'policy: none' every message is sent at once")
      }
    }
    guard let from, let to else { return nil }
    checkWildcards(from: from, to: to)
    var route = RouteConfiguration(from: from.end, to: to.end, policy: policy)
    route.mergesJSON = merge == "json"
    route.qos = qos ?? 1
    route.pass = pass.map(\.pattern)
    route.urgent = urgent.map(\.pattern)
    route.wordDelay = wordDelay
    route.announces = announces ?? false
    route.will = will
    return (route, RoutePositions(from: from.position, to: to.position))
  }

  private typealias End = (end: RouteConfiguration.End, position: SourcePosition)

  private func end(_ fields: Section, _ key: String) -> End? {
    guard let node = fields[key] else {
      fields.missing(key, "a route leads from a topic to a topic")
      return nil
    }
    var broker: String?
    var isBrokerKnown = true
    var topicNode = node
    if node.text == nil {
      guard let end = Section(node, .routeEnd, problems, what: key) else { return nil }
      broker = end.text("broker")
      if let name = broker, let brokerNode = end["broker"], !brokers.contains(name) {
        problems.add(
          brokerNode.position,
          "unknown broker '\(Excerpt.of(name))'; defined: "
            + (brokers.isEmpty ? "none" : Section.list(brokers)),
          suggestion: Suggestion.nearest(to: name, in: brokers)
        )
        isBrokerKnown = false
      }
      guard let found = end["topic"] else {
        end.missing("topic", "a route leads from a topic to a topic")
        return nil
      }
      topicNode = found
    }
    guard let topic = topicNode.text else {
      return fields.reject(topicNode, key, expected: "a topic")
    }
    let reserved = key == "to" && Topic.isReserved(topic) ? Topic.reservedProblem : nil
    if let problem = reserved ?? Topic.problem(inFilter: topic) {
      problems.add(topicNode.position, "\(key): \(problem)")
      return nil
    }
    guard isBrokerKnown else { return nil }
    return (.init(broker: broker, topic: topic), topicNode.position)
  }

  private func checkWildcards(from: End, to: End) {
    let (given, taken) = (
      Topic.wildcards(of: from.end.topic), Topic.wildcards(of: to.end.topic)
    )
    guard given != taken else { return }
    let words = { (list: [Substring]) in
      list.isEmpty ? "none" : list.map { "'\($0)'" }.joined(separator: ", ")
    }
    problems.add(
      to.position,
      "to: its wildcards must be those of 'from', in order; from has \(words(given)), "
        + "to has \(words(taken))"
    )
  }
}

/// Reads `pass` and `urgent` of a route: payloads, members, and members with a value.
struct MessagePatternReader {
  /// A pattern and where it stands.
  typealias Entry = (pattern: MessagePattern, position: SourcePosition)

  let fields: Section

  /// The patterns of `key`; those that are also in `others`, or listed twice, are mistakes.
  func patterns(_ key: String, without others: [Entry] = []) -> [Entry] {
    var entries: [Entry] = []
    var seen: Set<MessagePattern> = []
    let others = Set(others.map(\.pattern))
    for element in fields.elements(key) ?? [] {
      guard let pattern = pattern(element, key) else { continue }
      if seen.contains(pattern) {
        fields.problems.add(element.position, "\(key): \(Self.text(pattern)) is listed twice")
      } else if others.contains(pattern) {
        let message = "\(key): \(Self.text(pattern)) is in 'pass' too; it can be in one of them"
        fields.problems.add(element.position, message)
      } else {
        seen.insert(pattern)
        entries.append((pattern, element.position))
      }
    }
    return entries
  }

  private func pattern(_ element: YAMLNode, _ key: String) -> MessagePattern? {
    if let pair = element.pairs?.first, element.pairs?.count == 1 {
      guard let pointer = pointer(pair.key, pair.keyPosition, key) else { return nil }
      guard pair.value.text != nil, let value = pair.value.json(fields.problems) else {
        return fields.reject(pair.value, key, expected: "one text, number or boolean")
      }
      return .value(pointer, value)
    }
    guard let text = element.text, !text.isEmpty else {
      return fields.reject(
        element,
        key,
        expected: "a payload, a JSON Pointer, or one with a value such as {/state: STOP}"
      )
    }
    guard text.utf8.first == UInt8(ascii: "/") else { return .payload(Array(text.utf8)) }
    return pointer(text, element.position, key).map(MessagePattern.member)
  }

  private func pointer(_ text: String, _ position: SourcePosition, _ key: String) -> JSONPointer? {
    if !text.isEmpty, let pointer = JSONPointer(text) { return pointer }
    fields.problems.add(
      position,
      "\(key): '\(Excerpt.of(text))' is not a JSON Pointer, such as /state"
    )
    return nil
  }

  private static func text(_ pattern: MessagePattern) -> String {
    switch pattern {
    case .payload(let bytes): "'\(Excerpt.of(String(decoding: bytes, as: UTF8.self)))'"
    case .member(let pointer): "'\(Excerpt.of(pointer.text))'"
    case .value(let pointer, let value):
      "{\(Excerpt.of(pointer.text)): \(Excerpt.of(JSONWriter.text(value)))}"
    }
  }
}

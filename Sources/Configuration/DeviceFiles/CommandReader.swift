// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
import JSON
internal import MQTTTopics
internal import Values

/// Reads `command:`, a property's topic and payload for commands.
struct CommandReader {
  let baseTopic: String
  let placeholders: Placeholders
  let problems: Problems

  func endpoint(_ section: Section, at position: SourcePosition, isAction: Bool) -> CommandEndpoint?
  {
    guard section["command"] != nil else {
      if !section.hasMisspelled("command") {
        problems.add(position, "'command' is missing: where do the words of this action go?")
      }
      return nil
    }
    guard let fields = section.nested("command", .command) else { return nil }
    checkRetain(fields)
    let qos = fields.integer("qos", in: 0...2)
    let payload = payload(fields, isAction: isAction)
    guard let topic = fields.topic("topic", placeholders) else { return nil }
    let filters = SettingsRules.commandFilters(baseTopic: baseTopic)
    if let own = filters.first(where: { Topic.overlaps($0, topic) }) {
      problems.add(
        fields["topic"]?.position ?? fields.position,
        "topic: '\(Excerpt.of(topic))' is the gateway's own ('\(own)'), which would loop"
      )
    }
    guard let payload else { return nil }
    return CommandEndpoint(topic: topic, payload: payload, qos: qos ?? 1)
  }

  private func checkRetain(_ fields: Section) {
    guard fields.flag("retain") == true, let node = fields["retain"] else { return }
    problems.add(
      node.position,
      "retain: commands are never retained, because the broker would replay a stale one; remove it"
    )
  }

  private func payload(_ fields: Section, isAction: Bool) -> PayloadTemplate? {
    guard let node = fields["payload"] else {
      return PayloadTemplate(.string(PayloadTemplate.placeholder))
    }
    let before = problems.count
    let structure = node.json(problems) { text, scalar in
      if PayloadTemplate.part(text) != nil { return Optional.none }
      if text != PayloadTemplate.placeholder, text.has(PayloadTemplate.placeholder) {
        problems.add(
          scalar.position,
          "payload: '$value' must be a whole string, found '\(Excerpt.of(text))'; payloads are "
            + "structures, not text"
        )
      }
      return placeholders.payloadValue(text, at: scalar.position)
    } name: { pair in
      // A parameter may be a part of a member's name.
      placeholders.expandParameters(pair.key)
    }
    guard let structure, problems.count == before else { return nil }
    let template = PayloadTemplate(structure)
    guard template.carriesValue || isAction else {
      problems.add(
        node.position,
        "payload: '$value' is missing, so every value would send the same payload"
      )
      return nil
    }
    return template
  }
}

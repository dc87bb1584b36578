// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
import JSON

/// Reads `state:`, the topics on which a property is reported.
struct StateReader {
  let placeholders: Placeholders
  let problems: Problems

  /// Reads one mapping or a list of mappings; `none` means no sources.
  func sources(_ property: Section, at position: SourcePosition) -> [StateSource] {
    guard let node = property["state"], node.text != "none" else { return [] }
    if let elements = node.elements {
      return elements.compactMap { element in
        Section(element, .state, problems, what: "state").flatMap { source($0) }
      }
    }
    return property.nested("state", .state).flatMap { source($0) }.map { [$0] } ?? []
  }

  private func source(_ fields: Section) -> StateSource? {
    let pointer = fields.pointer("value", placeholders)
    let request = request(fields)
    let acknowledges = fields.flag("acknowledges")
    let error = fields.pointer("error", placeholders)
    let reply = fields.pointer("id", placeholders).map { ReplySource(id: $0, error: error) }
    if reply == nil, let node = fields["error"] {
      problems.add(node.position, "error: needs 'id', which identifies the refused message")
    }
    guard let topic = fields.topic("topic", placeholders) else { return nil }
    return StateSource(
      topic: topic,
      value: pointer ?? .whole,
      get: request,
      acknowledges: acknowledges ?? (reply != nil),
      reply: reply
    )
  }

  private func request(_ fields: Section) -> StateRequest? {
    if fields["get"]?.text == "none" { return nil }
    guard let get = fields.nested("get", .stateGet) else { return nil }
    let topic = get.topic("topic", placeholders)
    var payload: [UInt8] = []
    var members: [JSONValue.Member]?
    if let node = get["payload"] {
      let structure = node.json(problems) { text, scalar in
        placeholders.payloadValue(text, at: scalar.position)
      }
      guard let structure else { return nil }
      if PayloadTemplate(structure).carriesValue {
        problems.add(node.position, "get: a request for the state has no '$value'")
      }
      if case .object(let found) = structure { members = found }
      if structure != .null { PayloadTemplate(structure).render(.null, into: &payload) }
    }
    guard let topic else { return nil }
    // What is published must be what the file says: no placeholder is left in it.
    if let members, JSONWriter.bytes(.object(members)) == payload {
      return StateRequest(topic: topic, members: members)
    }
    return StateRequest(topic: topic, payload: payload)
  }
}

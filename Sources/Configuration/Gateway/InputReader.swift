// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
import JSON
internal import Values

/// Reads one entry of `inputs:`.
struct InputReader {
  let problems: Problems

  func input(_ node: YAMLNode) -> (input: InputConfiguration, positions: [String: InputPositions])?
  {
    guard let fields = Section(node, .input, problems, what: "input") else { return nil }
    let pointer = fields.pointer("value", nil)
    var topic: String?
    if let node = fields["topic"] {
      topic = fields.text("topic", expected: "a topic")
      if let text = topic, let problem = Topic.problem(inFilter: text) {
        problems.add(node.position, "topic: \(problem)")
        topic = nil
      }
    } else {
      fields.missing("topic", "the topic of the events")
    }
    guard let map = fields["map"] else {
      fields.missing(
        "map",
        "the change for each value, such as toggle: {key: lamp/power, toggle: true}"
      )
      return nil
    }
    guard let pairs = map.pairs else {
      return fields.reject(map, "map", expected: "a mapping from values to changes")
    }
    var changes: [String: InputConfiguration.Change] = [:]
    var positions: [String: InputPositions] = [:]
    for pair in pairs {
      guard let (change, position) = change(pair) else { continue }
      changes[pair.key] = change
      positions[pair.key] = position
    }
    guard let topic else { return nil }
    var input = InputConfiguration(topic: topic, value: pointer ?? .whole, map: changes)
    input.source = source(fields)
    return (input, positions)
  }

  /// The name of the source of the changes.
  private func source(_ fields: Section) -> String? {
    guard let node = fields["source"] else { return nil }
    guard let text = node.text, (1...64).contains(text.utf8.count) else {
      return fields.reject(node, "source", expected: "a word of 64 bytes at most, such as knob")
    }
    return text
  }

  private func change(
    _ pair: YAMLNode.Pair
  ) -> (InputConfiguration.Change, InputPositions)? {
    guard
      let fields = Section(
        pair.value,
        .inputChange,
        problems,
        what: "map '\(Excerpt.of(pair.key))'"
      )
    else { return nil }
    let operations = ["set", "step", "toggle"].filter { fields[$0] != nil }
    guard operations.count == 1, let node = fields[operations[0]] else {
      problems.add(
        fields.position,
        "a change has one of set, step and toggle, found "
          + (operations.isEmpty ? "none" : Section.list(operations))
      )
      return nil
    }
    let operation: InputConfiguration.Operation
    switch operations[0] {
    case "set":
      guard let value = node.json(problems) else { return nil }
      operation = .set(value)
    case "step":
      guard let amount = fields.number("step") else { return nil }
      operation = .step(amount)
    default:
      guard fields.flag("toggle") == true else {
        if fields.flag("toggle") == false {
          problems.add(node.position, "toggle: found 'false', expected true")
        }
        return nil
      }
      operation = .toggle
    }
    guard let key = fields.text("key", expected: "DEVICE/PROPERTY"), let keyNode = fields["key"]
    else {
      if fields["key"] == nil { fields.missing("key", "which key changes? DEVICE/PROPERTY") }
      return nil
    }
    return (
      InputConfiguration.Change(key: key, operation: operation),
      InputPositions(key: keyNode.position, operation: node.position)
    )
  }

  /// Reports changes whose key or value no device accepts.
  static func check(
    _ inputs: [InputConfiguration],
    _ positions: [[String: InputPositions]],
    against registry: Registry,
    problems: Problems
  ) {
    for (input, positions) in zip(inputs, positions) {
      for (word, change) in input.map {
        guard let position = positions[word] else { continue }
        check(change, position, against: registry, problems: problems)
      }
    }
  }

  private static func check(
    _ change: InputConfiguration.Change,
    _ position: InputPositions,
    against registry: Registry,
    problems: Problems
  ) {
    let property: Property
    do throws(ValidationError) {
      property = registry[try registry.index(of: change.key)].property
    } catch {
      return problems.add(position.key, "key: \(registry.suggesting(error))")
    }
    do throws(ValidationError) {
      switch change.operation {
      case .set(let value): _ = try property.value(from: value)
      case .step(let amount):
        guard property.kind.numberRule != nil else {
          throw .unsupported("'\(change.key)' is of type \(property.kind.name)")
        }
        _ = try property.stepped(from: .number(0), by: amount)
      case .toggle: _ = try property.toggled(from: .boolean(false))
      }
    } catch {
      problems.add(position.operation, "\(error)")
    }
  }
}

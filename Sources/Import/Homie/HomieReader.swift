// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
internal import Values

/// Reads Homie 5 devices from their `$description`.
struct HomieReader {
  /// Reads all descriptions, in the order of their topics.
  func findings(_ announcements: [Announcement]) -> Findings {
    var findings = Findings()
    for announcement in announcements.sorted(by: { $0.topic < $1.topic }) {
      guard let topic = announcement.topic.stem(before: "/$description"),
        !announcement.payload.isEmpty, let description = findings.json(of: announcement)
      else { continue }
      read(description, topic: topic, &findings)
    }
    return findings
  }

  private func read(_ description: JSONValue, topic: String, _ findings: inout Findings) {
    guard let version = description["homie"]?.scalarText, version.hasPrefix("5") else {
      findings.report(.refused, topic, "its $description does not state Homie 5")
      return
    }
    if let problem = TopicName.problem(topic) {
      findings.report(.refused, topic, problem)
      return
    }
    let own = topic.split(separator: "/").last.map { String($0) } ?? topic
    let name = description["name"]?.string ?? own
    var device = ImportedDevice(
      identity: topic,
      name: name.isEmpty ? own : name,
      comment: description["type"]?.string ?? ""
    )
    device.topic = topic
    device.availability = [Self.availability("$topic/$$state")]
    if let root = description["root"]?.string, root != own, !root.isEmpty {
      let above = String(topic.dropLast(own.utf8.count) + root)
      if let problem = TopicName.problem(above) {
        findings.report(.partly, device.name, "without the availability of its root: \(problem)")
      } else {
        device.availability.append(
          Self.availability(PlaceholderText.escaped(above) + "/$$state")
        )
      }
    }
    var names = PropertyNames()
    var skipped: [String] = []
    let nodes = description["nodes"]?.members ?? []
    let ids = nodes.flatMap { $0.value["properties"]?.members?.map(\.name) ?? [] }
    for node in nodes.prefix(200) {
      for property in (node.value["properties"]?.members ?? []).prefix(500) {
        let label = "\(node.name)/\(property.name)"
        let isReadOnly = property.value["settable"] != true
        // What is not retained is an event.
        if isReadOnly, property.value["retained"] == false {
          skipped.append(label)
          continue
        }
        let isAlone = ids.count { $0 == property.name } == 1
        let wanted = isAlone ? property.name : "\(node.name)_\(property.name)"
        var notes: [String] = []
        do throws(Rejection) {
          var made = try makeProperty(property.value, wanted) { notes.append($0) }
          made.id = names.unique(made.id)
          setTopics(&made, property.value, "$topic/\(PlaceholderText.escaped(label))")
          if let problem = TopicName.problem("\(topic)/\(label)/set") {
            findings.report(.refused, "\(name): \(label)", problem)
          } else {
            device.properties.append(made)
          }
        } catch {
          if isReadOnly {
            skipped.append(label)
          } else {
            findings.report(.leftOut, "\(name): \(label)", error.reason)
          }
        }
        for note in isReadOnly ? [] : notes { findings.report(.partly, "\(name): \(label)", note) }
      }
    }
    if !skipped.isEmpty {
      findings.report(.diagnostic, name, skipped.joined(separator: ", "))
    }
    if !device.properties.isEmpty { findings.devices.append(device) }
  }

  private static func availability(_ topic: String) -> JSONValue {
    .object([
      "topic": .string(topic), "online": "ready",
      "offline": ["init", "disconnected", "sleeping", "lost"],
    ])
  }

  /// Sets the property's topics.
  ///
  /// A property that is not retained has no state.
  private func setTopics(_ made: inout ImportedProperty, _ property: JSONValue, _ topic: String) {
    if property["settable"] == true {
      made.setCommand(to: "\(topic)/set")
    } else {
      for field in ["range", "step"] { made[field] = Optional.none }
    }
    if property["retained"] != false, made["type"] != "action" { made.setState(on: topic) }
    if let name = PlainText.nonEmpty(property["name"]?.string, limit: 60), name != made.id {
      made["name"] = .string(name)
    }
  }

  private func makeProperty(
    _ property: JSONValue,
    _ id: String,
    _ report: (String) -> Void
  ) throws(Rejection) -> ImportedProperty {
    let format = property["format"]?.string ?? ""
    let isMomentary = property["retained"] == false
    let datatype = property["datatype"]?.string ?? ""
    switch datatype {
    case "integer", "float":
      var range = try range(format, unit: property["unit"]?.string)
      range.isWhole = datatype == "integer"
      return try range.property(id, report: report)
    case "boolean":
      guard isMomentary else { return ImportedProperty(id, type: "boolean") }
      return ImportedProperty(id, type: "action", ["values": .object(["press": true])])
    case "enum":
      let words = format.split(separator: ",").map { JSONValue.string(String($0)) }
      guard let values = ChoiceWords.field(words) else {
        throw Rejection("an enum whose format lists no values")
      }
      return ImportedProperty(id, type: isMomentary ? "action" : "choice", ["values": values])
    case "color":
      let formats = format.split(separator: ",")
      guard formats.contains("rgb") || formats.contains("hsv") else {
        throw Rejection(
          "a color in the format '\(Excerpt.of(format))'; only rgb and hsv are supported"
        )
      }
      let encoding: JSONValue = formats.contains("rgb") ? "rgb,r,g,b" : "hsv,h,s,v"
      return ImportedProperty(id, type: "color", ["encode": encoding])
    case "string", "datetime", "duration": return ImportedProperty(id, type: "text")
    case "json": throw Rejection("a JSON structure")
    default: throw Rejection("its datatype '\(Excerpt.of(datatype))' is not supported")
    }
  }

  /// Reads `min:max:step`; each part is optional.
  private func range(_ format: String, unit: String?) throws(Rejection) -> NumberRange {
    var range = NumberRange(unit: unit)
    if format.isEmpty { return range }
    let parts = format.split(separator: ":", omittingEmptySubsequences: false)
    let numbers = parts.map { $0.isEmpty ? Optional.none : NumberText.parse($0) }
    guard parts.count <= 3, zip(parts, numbers).allSatisfy({ $0.isEmpty || $1 != nil }) else {
      throw Rejection("its format '\(Excerpt.of(format))' is not a range")
    }
    range.low = numbers[0]
    if numbers.count > 1 { range.high = numbers[1] }
    if numbers.count > 2 { range.step = numbers[2] }
    return range
  }
}

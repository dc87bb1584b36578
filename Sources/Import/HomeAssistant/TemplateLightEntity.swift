// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import Values

/// Lights with the schema `template`, whose commands are one template with a part for each value.
struct TemplateLightEntity {
  private static let onKey = "command_on_template"

  private let template: Template
  /// The text of ``template``.
  private let text: String

  static func read(_ reader: inout EntityReader) {
    guard let (text, found) = reader.template(onKey), let template = found else {
      return reader.report(
        "its \(onKey) cannot be translated: \(Excerpt.of(reader.text(onKey) ?? "", limit: 200))",
        .leftOut
      )
    }
    let light = TemplateLightEntity(template: template, text: text)
    light.readValues(&reader)
    light.readColor(&reader)
    // The last of a message wins, and what a lamp is switched to counts more than what a level
    // says.
    light.readPower(&reader)
    // Home Assistant turns a lamp on with each of them: "the template for on state changes".
    reader.implyPower()
    reader.merges = reader.properties.count > 1
    let transitions = [2, 7].compactMap { (seconds: Int64) in
      light.command(["transition": .integer(seconds)])
    }
    if PayloadShape(transitions)?.structure["transition"] == "$value" {
      reader.options = ["transition"]
    }
  }

  /// The command for these variables; `nil` if there is none.
  private func command(_ variables: [String: TemplateValue]) -> String? {
    template.rendered(variables.merging(["state": .boolean(true)]) { $1 })
  }

  private func readPower(_ reader: inout EntityReader) {
    let offKey = "command_off_template"
    let turningOn = command([:])
    let (offText, off) = reader.template(offKey) ?? ("", nil)
    let turningOff = off?.rendered(["state": .boolean(false)])
    let power = ImportedProperty("power", type: "boolean", ["on": "on", "off": "off"])
    let meaning = StateMeaning(power)
    guard let turningOn, let turningOff, !turningOn.isEmpty, !turningOff.isEmpty,
      turningOn != turningOff
    else {
      let isOn = turningOn?.isEmpty == false
      return reader.reportCommand(
        "power",
        isOn ? offKey : Self.onKey,
        isOn ? offText : text,
        limit: 200
      )
    }
    _ = reader.add(
      power: power,
      on: turningOn,
      off: turningOff,
      reportedBy: "state_template",
      meaning
    )
  }

  private func readValues(_ reader: inout EntityReader) {
    var made: [(variable: String, property: ImportedProperty?)] = []
    let range = NumberRange(low: 0, high: 255, step: 1)
    made.append(("brightness", try? range.property("brightness") { _ in }))
    if isUsed("color_temp", reader) {
      made.append(("color_temp", LightEntity.colorTemperature(&reader)))
    }
    if reader.config["effect_list"] != nil {
      made.append(("effect", reader.choice("effect", "effect_list")))
    }
    for (variable, property) in made where isUsed(variable, reader) {
      guard var property else { continue }
      let meaning = StateMeaning(property)
      let command = CommandTemplate(template: template) {
        [variable: $0, "state": .boolean(true)]
      }
      guard let payload = property.payload(of: command) else {
        reader.reportCommand(property.id, Self.onKey, text, limit: 200)
        continue
      }
      reader.add(property, payload: payload, reportedBy: "\(variable)_template", meaning)
    }
  }

  private func readColor(_ reader: inout EntityReader) {
    let variables: [String: TemplateValue] = [
      "red": 1, "green": 2, "blue": 3, "hue": 210, "sat": 67,
    ].mapValues { .integer($0) }
    guard command(variables) != command([:]) else { return }
    guard let found = ColorTemplate.command(template, ["state": .boolean(true)]) else {
      return reader.reportCommand("color", Self.onKey, text, limit: 200)
    }
    let encoding = JSONValue.string(found.encoding.rawValue)
    var color = ImportedProperty("color", type: "color", ["encode": encoding])
    var path: [String]?
    let keys = ["red_template", "green_template", "blue_template"]
    let texts = keys.compactMap { reader.template($0)?.text }
    if !texts.isEmpty {
      path = color.path(ofColor: try? Template(texts.joined(separator: ",")), .commaRGB)
      for key in keys where path == nil {
        if let text = reader.text(key) { reader.reportState("color", key, text) }
      }
    }
    reader.add(color, payload: found.payload, at: path)
  }

  /// Whether the template has something for a variable.
  private func isUsed(_ variable: String, _ reader: EntityReader) -> Bool {
    reader.config["\(variable)_template"] != nil
      || command([variable: .integer(77)]) != command([:])
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Values

extension Entity {
  /// The sensor or binary sensor of a read-only property, whose values are published on `topic`.
  static func sensor(_ property: Property, state topic: JSONValue) -> Entity {
    var fields = [JSONValue.Member("state_topic", topic)]
    func add(_ name: String, _ value: String?) {
      if let value { fields.append(.init(name, .string(value))) }
    }
    let isBinary = property.kind == .boolean
    switch property.kind {
    case .boolean:
      let isReversed = SensorClass.isReversed(property)
      add("payload_on", isReversed ? "false" : "true")
      add("payload_off", isReversed ? "true" : "false")
      add("device_class", SensorClass.ofBoolean(property))
    case .number(let rule), .integer(let rule):
      let found = SensorClass.ofNumber(property, unit: rule.unit)
      add("device_class", found)
      let isTotal = SensorClass.totals.contains(found ?? "")
      add("state_class", isTotal ? "total_increasing" : "measurement")
      add("unit_of_measurement", rule.unit)
    case .choice(let words):
      add("device_class", "enum")
      fields.append(.init("options", .array(words.map { .string($0) })))
    case .text, .color, .action: break
    }
    return Entity(
      platform: isBinary ? "binary_sensor" : "sensor",
      name: property.id,
      title: property.title,
      category: SensorClass.isDiagnostic(property) ? "diagnostic" : nil,
      fields: fields
    )
  }
}

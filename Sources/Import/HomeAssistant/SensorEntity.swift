// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// Sensors, which become read-only properties.
enum SensorEntity {
  /// The classes of sensors that are words or moments.
  private static let texts: Set = ["date", "timestamp", "enum"]
  /// The classes of sensors that are numbers without a unit.
  private static let bareNumbers: Set = ["aqi", "ph", "power_factor", "monetary"]

  static func read(_ reader: inout EntityReader) {
    reader.isSingle = true
    let kind = reader.text("device_class") ?? ""
    if let options = reader.config.elements("options"),
      let values = ChoiceWords.field(options.filter { $0 != "" })
    {
      var made = ImportedProperty("value", type: "choice")
      made["values"] = values
      return reader.add(reading: made)
    }
    let unit = PlainText.clean(reader.text("unit_of_measurement") ?? "", limit: 20)
    let isNumber =
      !texts.contains(kind)
      && (!unit.isEmpty || bareNumbers.contains(kind) || reader.config["state_class"] != nil)
    var made = ImportedProperty("value", type: isNumber ? "number" : "text")
    if isNumber, !unit.isEmpty { made["unit"] = .string(unit) }
    reader.add(reading: made)
  }

  static func readBinary(_ reader: inout EntityReader) {
    reader.isSingle = true
    if let made = reader.boolean("value") { reader.add(reading: made) }
  }
}

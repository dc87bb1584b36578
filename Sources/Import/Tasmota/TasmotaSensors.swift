// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON

/// What a Tasmota device measures, as `sn` in `…/sensors` lists it.
struct TasmotaSensors {
  private(set) var properties: [ImportedProperty] = []
  private(set) var skipped: [String] = []

  /// Names and units of quantities, from `sensor.py` of hatasmota; `nil` for the unit in the message.
  private static let quantities: [String: (id: String, unit: String?, key: String?)] = [
    "Temperature": ("temperature", nil, "TempUnit"), "DewPoint": ("dew_point", nil, "TempUnit"),
    "Humidity": ("humidity", "%", nil), "Pressure": ("pressure", nil, "PressureUnit"),
    "SeaPressure": ("sea_pressure", nil, "PressureUnit"), "Illuminance": ("illuminance", "lx", nil),
    "Power": ("active_power", "W", nil), "ApparentPower": ("apparent_power", "VA", nil),
    "ReactivePower": ("reactive_power", "var", nil), "Factor": ("power_factor", "", nil),
    "Voltage": ("voltage", "V", nil), "Current": ("current", "A", nil),
    "Frequency": ("frequency", "Hz", nil), "Total": ("energy", "kWh", nil),
    "Today": ("energy_today", "kWh", nil), "Yesterday": ("energy_yesterday", "kWh", nil),
    "CarbonDioxide": ("co2", "ppm", nil), "eCO2": ("eco2", "ppm", nil),
    "TVOC": ("tvoc", "ppb", nil), "PM1": ("pm1", "µg/m³", nil), "PM2.5": ("pm25", "µg/m³", nil),
    "PM10": ("pm10", "µg/m³", nil), "Distance": ("distance", "cm", nil),
    "Weight": ("weight", "kg", nil), "Moisture": ("soil_moisture", "%", nil),
  ]

  init(_ sensors: JSONValue, topics: TasmotaTopics) {
    var names = PropertyNames()
    for sensor in sensors.members ?? [] {
      guard let values = sensor.value.members else { continue }
      for value in values {
        let label = "\(sensor.name)/\(value.name)"
        guard let known = Self.quantities[value.name] else {
          skipped.append(label)
          continue
        }
        // Meters of several phases have lists.
        let places = value.value.elements.map { Array($0.indices) } ?? []
        guard places.isEmpty ? value.value.double != nil || value.value == .null : true else {
          skipped.append(label)
          continue
        }
        for place in places.isEmpty ? [nil] : places.prefix(3).map({ Optional($0) }) {
          let phase = place.map { "_\($0 + 1)" } ?? ""
          var made = ImportedProperty(names.unique(known.id + phase), type: "number")
          let unit = known.key.flatMap { sensors[$0]?.string } ?? known.unit ?? ""
          let shown = known.key == "TempUnit" && !unit.isEmpty ? "°\(unit)" : unit
          if !shown.isEmpty { made["unit"] = .string(PlainText.clean(shown, limit: 20)) }
          let path = [sensor.name, value.name] + (place.map { ["\($0)"] } ?? [])
          made.setState(on: topics.sensor, at: PlaceholderText.pointer(path))
          properties.append(made)
        }
      }
    }
  }
}

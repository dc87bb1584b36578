// Settle
// SPDX-License-Identifier: Apache-2.0

/// What a device or a property is for, in Home Assistant's words.
///
/// Source: the enumerations `…DeviceClass` of Home Assistant's core, by platform.
package enum DeviceClass {
  package static let covers: Set = [
    "awning", "blind", "curtain", "damper", "door", "garage", "gate", "shade", "shutter", "window",
  ]
  package static let switches: Set = ["outlet", "switch"]
  package static let buttons: Set = ["identify", "restart", "update"]
  /// What happens at a moment; `remote` is this project's word for any button.
  package static let events: Set = ["button", "doorbell", "remote"]
  package static let binarySensors: Set = [
    "battery", "battery_charging", "carbon_monoxide", "cold", "connectivity", "door",
    "garage_door", "gas", "heat", "light", "lock", "moisture", "motion", "moving", "occupancy",
    "opening", "plug", "power", "presence", "problem", "running", "safety", "smoke", "sound",
    "tamper", "update", "vibration", "window",
  ]
  package static let numbers: Set = [
    "absolute_humidity", "apparent_power", "aqi", "area", "atmospheric_pressure", "battery",
    "blood_glucose_concentration", "carbon_dioxide", "carbon_monoxide", "conductivity", "current",
    "data_rate", "data_size", "distance", "duration", "energy", "energy_distance",
    "energy_storage", "frequency", "gas", "humidity", "illuminance", "irradiance", "moisture",
    "monetary", "nitrogen_dioxide", "nitrogen_monoxide", "nitrous_oxide", "ozone", "ph", "pm1",
    "pm10", "pm25", "pm4", "power", "power_factor", "precipitation", "precipitation_intensity",
    "pressure", "reactive_energy", "reactive_power", "signal_strength", "sound_pressure", "speed",
    "sulphur_dioxide", "temperature", "temperature_delta", "volatile_organic_compounds",
    "volatile_organic_compounds_parts", "voltage", "volume", "volume_flow_rate", "volume_storage",
    "water", "weight", "wind_direction", "wind_speed",
  ]
  /// What has no class in Home Assistant, but an entity of its own.
  package static let own: Set = [
    "fan", "lamp", "lock", "remote", "siren", "thermostat", "valve",
  ]
  /// The rest of Home Assistant's words.
  private static let others: Set = [
    "date", "dehumidifier", "enum", "firmware", "humidifier", "motion", "receiver", "speaker",
    "timestamp", "tv",
  ]

  /// All words.
  package static let words: Set = [
    covers, switches, buttons, events, binarySensors, numbers, own, others,
  ].reduce(into: []) { $0.formUnion($1) }
}

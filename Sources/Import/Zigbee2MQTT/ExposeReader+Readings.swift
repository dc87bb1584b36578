// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import Values

/// Exposes that cannot be set become read-only properties.
extension ExposeReader {
  /// Readings about the device itself, and events: an event has no value that lasts.
  private static let diagnostic: Set = [
    "linkquality", "update", "update_available", "last_seen", "device_temperature",
    "power_outage_count", "trigger_count", "action",
  ]
  /// Readings that count although Zigbee2MQTT calls them diagnostic.
  private static let wanted: Set = ["battery", "battery_low"]

  /// Adds a reading, unless it is diagnostic.
  mutating func addReading(
    _ expose: JSONValue,
    type: String,
    property: String,
    owner: String?
  ) {
    let name = expose["name"]?.string ?? property
    let isDiagnostic =
      Self.diagnostic.contains(name) || name.hasPrefix("action_")
      || expose["category"] == "diagnostic" && !Self.wanted.contains(name)
    guard includesDiagnostic || !isDiagnostic,
      var made = reading(expose, type: type, id: readingID(expose, property, owner))
    else { return skipped.append(PlainText.clean(property, limit: 60)) }
    made.id = names.unique(made.id)
    if made.id != property, names.reserve(property) {
      made["aliases"] = .array([.string(property)])
    }
    made.setState(on: "$topic", at: PlaceholderText.pointer([property]))
    properties.append(made)
  }

  /// The identifier; the power that a plug measures is not the `power` that switches it.
  private func readingID(_ expose: JSONValue, _ property: String, _ owner: String?) -> String {
    if expose["type"] == "numeric", expose["name"] == "power" { return "active_\(property)" }
    return wantedID(expose, property: property, owner: owner)
  }

  /// `nil` for a list and a group of values.
  private func reading(_ expose: JSONValue, type: String, id: String) -> ImportedProperty? {
    switch type {
    case "numeric":
      var made = ImportedProperty(id, type: "number")
      let unit = expose["unit"]?.string.map { PlainText.clean($0, limit: 20) } ?? ""
      if !unit.isEmpty { made["unit"] = .string(unit) }
      return made
    case "binary":
      // true and false stay what the device says, also where its "on" is false, as for a contact.
      let words = [expose["value_on"], expose["value_off"]]
      if words.allSatisfy({ $0 == true || $0 == false }) {
        return ImportedProperty(id, type: "boolean")
      }
      return try? boolean(expose, id).get()
    case "enum":
      let words = (expose.elements("values") ?? []).filter { $0 != "" }
      guard let values = ChoiceWords.field(words) else { return ImportedProperty(id, type: "text") }
      var made = ImportedProperty(id, type: "choice")
      made["values"] = values
      return made
    case "text": return ImportedProperty(id, type: "text")
    default: return nil
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
internal import Values

/// The property types that platforms consist of.
extension EntityReader {
  /// Creates a boolean with the entity's payloads for on and off.
  mutating func boolean(
    _ id: String,
    on: String = "payload_on",
    off: String = "payload_off",
    standard: (on: JSONValue, off: JSONValue) = ("ON", "OFF")
  ) -> ImportedProperty? {
    guard let on = payload(on, else: standard.on), let off = payload(off, else: standard.off),
      !on.isSameScalar(as: off)
    else {
      report("\(id): its payloads for on and off are not two different words", .leftOut)
      return nil
    }
    var property = ImportedProperty(id, type: "boolean")
    if on != true { property["on"] = on }
    if off != false { property["off"] = off }
    return property
  }

  /// Creates a number with bounds and step from the given keys.
  mutating func number(
    _ id: String,
    low: (key: String, standard: Double),
    high: (key: String, standard: Double),
    step: (key: String, standard: Double)?,
    unit: String?
  ) -> ImportedProperty? {
    var range = NumberRange()
    range.low = number(low.key) ?? low.standard
    range.high = number(high.key) ?? high.standard
    range.step = step.map { number($0.key) ?? $0.standard }
    range.unit = unit
    var notes: [String] = []
    switch range.property(id, report: { notes.append($0) }) {
    case .failure(let refusal):
      report("\(id): \(refusal.reason)", .refused)
      return nil
    case .success(let property):
      for reason in notes { report("\(id): \(reason)") }
      return property
    }
  }

  /// Creates a choice with the words under `key`; reports a missing or invalid list.
  mutating func choice(_ id: String, _ key: String, standard: [JSONValue] = []) -> ImportedProperty?
  {
    guard let values = ChoiceWords.field(config.elements(key) ?? standard) else {
      report("\(id): '\(key)' lists no words", .leftOut)
      return nil
    }
    var property = ImportedProperty(id, type: "choice")
    property["values"] = values
    return property
  }

  /// Creates an action whose words map to the payloads under the given keys.
  func action(
    _ id: String,
    _ words: [(word: String, key: String, standard: JSONValue)]
  ) -> ImportedProperty? {
    let present = words.compactMap { row in
      payload(row.key, else: row.standard).map { (word: row.word, wire: $0) }
    }
    guard let values = ChoiceWords.field(present) else { return nil }
    var property = ImportedProperty(id, type: "action")
    property["values"] = values
    return property
  }
}

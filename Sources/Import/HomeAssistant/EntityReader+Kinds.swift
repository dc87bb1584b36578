// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// The types of properties that platforms are made of.
extension EntityReader {
  /// A boolean with the entity's two payloads.
  mutating func boolean(
    _ id: String,
    on: String = "payload_on",
    off: String = "payload_off",
    standard: (on: JSONValue, off: JSONValue) = ("ON", "OFF")
  ) -> ImportedProperty? {
    guard let on = payload(on, else: standard.on), let off = payload(off, else: standard.off),
      !on.isSameScalar(as: off)
    else {
      note("\(id): its payloads for on and off are no two words", .leftOut)
      return nil
    }
    var property = ImportedProperty(id, type: "boolean")
    if on != true { property["on"] = on }
    if off != false { property["off"] = off }
    return property
  }

  /// Takes the state away from the last property if it reports in other words than commands have.
  mutating func checkWords(on: String, off: String) {
    guard let property = properties.last, property["state"] != nil else { return }
    for (key, field) in [(on, "on"), (off, "off")] {
      guard let reported = config[key], let sent = property[field],
        !reported.isSameScalar(as: sent), reported.scalarText?.lowercased() != field
      else { continue }
      dropState("\(property.id): without a state, which says \(Excerpt.of(reported)) for \(field)")
      return
    }
  }

  /// A number with the ends that the entity names under these keys.
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
    switch range.property(id, note: { notes.append($0) }) {
    case .failure(let refusal):
      note("\(id): \(refusal.reason)", .refused)
      return nil
    case .success(let property):
      for reason in notes { note("\(id): \(reason)") }
      return property
    }
  }

  /// A choice among the words under `key`; `nil`, said, where there are none.
  mutating func choice(_ id: String, _ key: String, standard: [JSONValue] = []) -> ImportedProperty?
  {
    guard let values = ChoiceWords.field(config.elements(key) ?? standard) else {
      note("\(id): '\(key)' lists no words", .leftOut)
      return nil
    }
    var property = ImportedProperty(id, type: "choice")
    property["values"] = values
    return property
  }

  /// An action with the payloads under these keys, each under the word for it.
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

  static let position: JSONValue = .object(["delay": "500ms", "max_wait": "none"])
  static let setpoint: JSONValue = .object(["delay": "800ms", "max_wait": "none"])
}

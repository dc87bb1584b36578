// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// The ends and the grid of a number, as they were announced.
struct NumberRange {
  var low: Double?
  var high: Double?
  var step: Double?
  var unit: String?

  /// Beyond this, nobody means it.
  private static let largest = 1e12

  /// A number property with what can be taken of this; a reason, where that is nothing.
  ///
  /// Whole ends and a whole step, or none, make it an integer. `note` hears what was left out.
  func property(_ id: String, note: (String) -> Void) -> Result<ImportedProperty, Refusal> {
    let bounds = [low, high, step].compactMap(\.self)
    guard bounds.allSatisfy({ $0.isFinite && $0.magnitude <= Self.largest }) else {
      return .failure(Refusal("its range or step is out of all bounds (\(words))"))
    }
    if let low, let high {
      if low > high {
        return .failure(Refusal("its range is upside down (\(words))"))
      }
      if low == high { return .failure(Refusal("its range is a single value (\(words))")) }
    }
    let grid = grid(note: note)
    let hasRange = low != nil && high != nil
    if !hasRange, low != nil || high != nil {
      note("only one end of its range is stated, so no range is checked")
    }
    let isWhole =
      (hasRange || grid != nil)
      && ([low, high, grid].compactMap(\.self)).allSatisfy { $0 == $0.rounded() }
    var property = ImportedProperty(id, type: isWhole ? "integer" : "number")
    if hasRange, let low, let high {
      property["range"] = .array([JSONValue(shortest: low), JSONValue(shortest: high)])
    }
    if let grid {
      property["step"] = JSONValue(shortest: grid)
    } else if isWhole {
      property["step"] = 1
    }
    if let unit = unit.map({ PlainText.clean($0, limit: 20) }), !unit.isEmpty {
      property["unit"] = .string(unit)
    }
    return .success(property)
  }

  private func grid(note: (String) -> Void) -> Double? {
    guard let step else { return nil }
    guard step > 0 else {
      note("its step is \(NumberText.shortest(step)), so none is kept")
      return nil
    }
    if let low, let high, step > high - low {
      note("its step is more than its whole range (\(words)), so none is kept")
      return nil
    }
    return step
  }

  private var words: String {
    let range = "\(low.map(NumberText.shortest) ?? "") to \(high.map(NumberText.shortest) ?? "")"
    return range + (step.map { ", step \(NumberText.shortest($0))" } ?? "")
  }
}

/// Why something was not taken.
struct Refusal: Error, Hashable, Sendable {
  let reason: String
  init(_ reason: String) { self.reason = reason }
}

/// Announced text, made fit for a file that people read.
enum PlainText {
  /// Without control characters, on one line, at most `limit` characters.
  static func clean(_ text: String, limit: Int = 120) -> String {
    var result = ""
    var count = 0
    for scalar in text.unicodeScalars {
      if count == limit { return result + "…" }
      let isPlain = Excerpt.escape(scalar) == nil && scalar.value != 0xFEFF
      result.unicodeScalars.append(isPlain ? scalar : " ")
      count += 1
    }
    return String(result.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
internal import Values

/// The announced bounds and step of a number.
struct NumberRange {
  var low: Double?
  var high: Double?
  var step: Double?
  var unit: String?
  /// Whether its numbers are whole, where the announcement says so; else bounds and step say it.
  var isWhole: Bool?

  /// The largest magnitude that is accepted: beyond it steps of a thousandth are lost.
  private static let largest = 0x1p47

  /// Creates a number property.
  ///
  /// `report` receives the reason for each part that is left out.
  ///
  /// - Throws: ``Rejection`` when there is no number between the bounds to choose.
  func property(
    _ id: String,
    report: (String) -> Void
  ) throws(Rejection) -> ImportedProperty {
    let bounds = [low, high, step].compactMap(\.self)
    guard bounds.allSatisfy({ $0.isFinite && $0.magnitude <= Self.largest }) else {
      report("its range or step is out of all bounds (\(words)), so none is kept")
      return try NumberRange(unit: unit, isWhole: isWhole).property(id, report: report)
    }
    if let low, let high {
      if low > high { throw Rejection("its range is upside down (\(words))") }
      if low == high {
        throw Rejection("its range is a single value (\(words))", isMistake: false)
      }
    }
    let step = usableStep(report: report)
    let hasRange = low != nil && high != nil
    if !hasRange, low != nil || high != nil {
      report("only one end of its range is stated, so no range is checked")
    }
    let isWhole =
      self.isWhole
      ?? ((hasRange || step != nil)
        && ([low, high, step].compactMap(\.self)).allSatisfy { $0 == $0.rounded() })
    var property = ImportedProperty(id, type: isWhole ? "integer" : "number")
    if hasRange, let low, let high {
      property["range"] = .array([JSONValue(shortest: low), JSONValue(shortest: high)])
    }
    if let step {
      property["step"] = JSONValue(shortest: step)
    } else if isWhole {
      property["step"] = 1
    }
    property["unit"] = PlainText.nonEmpty(unit, limit: 20).map { .string($0) }
    return property
  }

  private func usableStep(report: (String) -> Void) -> Double? {
    guard let step else { return nil }
    guard step > 0 else {
      report("its step is \(NumberText.shortest(step)), so none is kept")
      return nil
    }
    if let low, let high, step > high - low {
      report("its step is more than its whole range (\(words)), so none is kept")
      return nil
    }
    return step
  }

  private var words: String {
    let range = "\(low.map(NumberText.shortest) ?? "") to \(high.map(NumberText.shortest) ?? "")"
    return range + (step.map { ", step \(NumberText.shortest($0))" } ?? "")
  }
}

/// Why something cannot be imported.
struct Rejection: Error, Hashable, Sendable {
  let reason: String
  /// Whether the announcement has a mistake; else it says that nothing can be set.
  let isMistake: Bool

  init(_ reason: String, isMistake: Bool = true) {
    self.reason = reason
    self.isMistake = isMistake
  }
}

/// Makes announced text safe for files and terminals.
enum PlainText {
  /// Replaces control characters by spaces and keeps at most `limit` characters.
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

  /// The same; `nil` without a text, and for one of which nothing is left.
  static func nonEmpty(_ text: String?, limit: Int = 120) -> String? {
    text.map { clean($0, limit: limit) }.flatMap { $0.isEmpty ? nil : $0 }
  }
}

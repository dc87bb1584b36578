// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// How people read and type the numbers of a property: `50 %` for 127 of 254, `4000 K` for 250
/// mired.
///
/// It never changes what a device receives, or the numbers that programs read and write.
package struct Display: Hashable, Sendable {
  package var unit: String
  /// From the property's numbers to those that people read.
  package var scale: Scale

  package init(unit: String, scale: Scale) {
    self.unit = unit
    self.scale = scale
  }

  /// The number that people read; `nil` for one that the scale cannot convert, such as 0 mired.
  package func shown(_ number: Double) -> Double? {
    let shown = scale.converted(number)
    guard shown.magnitude < 1e15 else { return nil }
    return shown == 0 ? 0 : shown  // Never -0.
  }
}

// MARK: - JSON

extension Display {
  package var json: JSONValue {
    let form: JSONValue =
      switch scale {
      case .mired: "mired"
      case .linear(let from, let to, let decimals):
        .object([
          "from": .array([from.first, from.last].map { JSONValue(shortest: $0) }),
          "to": .array([to.first, to.last].map { JSONValue(shortest: $0) }),
          "decimals": .integer(Int64(decimals)),
        ])
      }
    return .object(["unit": .string(unit), "scale": form])
  }

  /// Reads ``json``; `nil` for anything else.
  package init?(_ json: JSONValue?) {
    guard let json, let unit = json["unit"]?.string, let form = json["scale"] else { return nil }
    if form == "mired" {
      self.init(unit: unit, scale: .mired)
    } else {
      guard let from = Self.interval(form["from"]), let to = Self.interval(form["to"]),
        let decimals = form["decimals"]?.double, (0...9).contains(decimals)
      else { return nil }
      self.init(unit: unit, scale: .linear(from: from, to: to, decimals: Int(decimals)))
    }
  }

  private static func interval(_ json: JSONValue?) -> Scale.Interval? {
    guard case .array(let ends)? = json, ends.count == 2, let first = ends[0].double,
      let last = ends[1].double, first != last
    else { return nil }
    return Scale.Interval(first, last)
  }
}

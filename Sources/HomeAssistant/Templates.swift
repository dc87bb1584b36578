// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Values

/// Home Assistant templates that convert between its values and Settle's payloads.
enum Templates {
  /// Converts a color in any form to `r,g,b`; empty for anything else, such as an empty payload.
  static let rgbFromColor = """
    {% if value[:1] == '#' %}\
    {{ [value[1:3], value[3:5], value[5:7]] | map('int', 0, 16) | join(',') }}\
    {% elif value_json is not defined or value_json is not mapping %}\
    {% elif value_json.x is defined and value_json.y > 0 %}\
    {% set n = namespace(v=[], top=0.0001) %}\
    {% set x = value_json.x / value_json.y %}\
    {% set z = (1 - value_json.x - value_json.y) / value_json.y %}\
    {% set linear = [x * 3.2406 - 1.5372 - z * 0.4986, 1.8758 - x * 0.9689 + z * 0.0415, \
    x * 0.0557 - 0.2040 + z * 1.0570] %}\
    {% for c in linear %}{% set n.top = [n.top, c] | max %}{% endfor %}\
    {% for c in linear %}{% set c = [c / n.top, 0] | max %}\
    {% set n.v = n.v + [((12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055) * 255) \
    | round | int] %}{% endfor %}\
    {{ n.v | join(',') }}\
    {% elif value_json.h is defined %}\
    {% set n = namespace(v=[]) %}\
    {% for c in [5, 3, 1] %}{% set k = (c + value_json.h / 60) % 6 %}\
    {% set n.v = n.v + [((1 - value_json.s / 100 * ([0, [k, 4 - k, 1] | min] | max)) * 255) \
    | round | int] %}{% endfor %}\
    {{ n.v | join(',') }}\
    {% endif %}
    """

  static let colorFromRGB = "{{ '#%02x%02x%02x' | format(red, green, blue) }}"

  /// Raises a level to `low`, the lower bound of the property's range.
  static func atLeast(_ low: Double) -> String { "{{ [value, \(text(low))] | max }}" }

  /// Converts a level from 0...255 to the range up to `high`.
  static func fraction(of high: Double, atLeast low: Double) -> String {
    "{{ [value / 255 * \(text(high)), \(text(low))] | max | round(4) }}"
  }

  /// Converts a level from the range up to `high` to 0...255.
  static func share(of high: Double) -> String {
    "{{ (value | float / \(text(high)) * 255) | round | int if value else '' }}"
  }

  private static func text(_ number: Double) -> String {
    JSONWriter.text(JSONValue(shortest: number))
  }

  /// Clamps a value to the range, because the gateway rejects values outside it.
  static func within(_ range: ClosedRange<Double>) -> String {
    "{{ [[value, \(text(range.lowerBound))] | max, \(text(range.upperBound))] | min }}"
  }

  /// Converts mireds to kelvin, clamped to the range.
  static func kelvin(within range: ClosedRange<Double>) -> String {
    "{{ [[(1000000 / value) | round | int, \(text(range.lowerBound))] | max,"
      + " \(text(range.upperBound))] | min }}"
  }

  /// Converts kelvin to mireds.
  static let mireds = "{{ (1000000 / (value | float)) | round | int if value else '' }}"
}

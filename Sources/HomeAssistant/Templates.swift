// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices

/// Home Assistant's templates: how payloads become what it shows, and back.
enum Templates {
  /// A color, however it is known, as `r,g,b`.
  static let rgbFromColor = """
    {% if value[:1] == '#' %}\
    {{ [value[1:3], value[3:5], value[5:7]] | map('int', 0, 16) | join(',') }}\
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

  /// Between mireds and kelvin, both ways.
  static let reciprocal = "{{ (1000000 / (value | float)) | round(0) | int if value else '' }}"

  /// `online` or `offline`, or nothing while the source says neither.
  static func availability(_ source: AvailabilitySource) -> String {
    let place = source.value.isWhole ? "value" : "value_json\(path(source.value))"
    return "{% set v = \(place) | default('') | string | lower %}"
      + "{{ 'online' if v in \(words(source.online)) else 'offline' if v in"
      + " \(words(source.offline)) else '' }}"
  }

  private static func words(_ value: JSONValue) -> String {
    let values: [JSONValue] = if case .array(let items) = value { items } else { [value] }
    let texts = values.compactMap(\.scalarText).map { quoted($0.lowercased()) }
    return "[\(texts.joined(separator: ", "))]"
  }

  /// `['a'][0]` for `/a/0`.
  private static func path(_ pointer: JSONPointer) -> String {
    pointer.text.split(separator: "/").map { part in
      let token = String(part).replacing("~1", with: "/").replacing("~0", with: "~")
      return Int(token) == nil ? "[\(quoted(token))]" : "[\(token)]"
    }.joined()
  }

  private static func quoted(_ text: String) -> String {
    "'\(text.replacing("\\", with: "\\\\").replacing("'", with: "\\'"))'"
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import Values

/// Home Assistant's templates of colors, as fields of a device file.
enum ColorTemplate {
  /// The members of reports that have a color's channels, in order.
  private static let channels = [["r", "g", "b"], ["red", "green", "blue"], ["0", "1", "2"]]

  /// How the template of an RGB command encodes a color, and its payload; `nil` if it is too
  /// complex.
  static func rgbCommand(_ template: String?) -> (encoding: String, payload: JSONValue)? {
    let bare = JSONValue.string(PayloadTemplate.placeholder)
    let text = (template ?? "").filter { !$0.isWhitespace }.replaced("\"#%", by: "'#%")
      .replaced("x\"|format", by: "x'|format").replaced("0\"|format", by: "0'|format")
    switch text {
    case "", "{{red}},{{green}},{{blue}}": return ("r,g,b", bare)
    case "{{'#%02x%02x%02x'|format(red,green,blue)}}": return ("hex", bare)
    // OpenBeken, whose two white channels may be left out: `led_basecolor_rgb` takes `#RRGGBB` too.
    case "{{'#%02x%02x%02x0000'|format(red,green,blue)}}": return ("hex", bare)
    default: break
    }
    let parts = ["red": "r", "green": "g", "blue": "b"].mapValues { "\(bare.string ?? "")/\($0)" }
    guard let payload = object(text, parts: parts) ?? dictionary(text, parts: parts) else {
      return nil
    }
    return ("rgb", payload)
  }

  /// The place of a color in reports, and the form of bare digits; `nil` if the template is too
  /// complex.
  static func rgbState(_ template: String) -> (path: [String], decoding: String?)? {
    let text = template.filter { !$0.isWhitespace }
    let slices = ["0:2", "2:4", "4:6"].map { "{{value[\($0)]|int(base=16)}}" }
    if text == slices.joined(separator: ",") { return ([], "hex") }
    for joined in ["|join(',')}}", "|join(\",\")}}"] where text.hasSuffix(joined) {
      return plain(text.dropLast(joined.count) + "}}").map { ($0, nil) }
    }
    let parts = text.split(separator: ",")
    if parts.count == 1 { return plain(text).map { ($0, nil) } }
    let paths = parts.compactMap { plain($0) }
    guard paths.count == 3, let parent = paths[0].isEmpty ? nil : paths[0].dropLast(),
      channels.contains(paths.compactMap(\.last)),
      paths.allSatisfy({ $0.dropLast() == parent })
    else { return nil }
    return (Array(parent), nil)
  }

  /// The place that a template picks, without any conversion.
  private static func plain(_ template: some StringProtocol) -> [String]? {
    if case .linear(let path, 1, 0) = TemplateForm.reading(String(template)) { path } else { nil }
  }

  /// Reads JSON with an expression for each of `parts`.
  static func object(_ text: String, parts: [String: String]) -> JSONValue? {
    var text = text
    for (name, placeholder) in parts {
      guard text.firstPlace(of: "{{\(name)}}") != nil else { return nil }
      text = text.replaced("{{\(name)}}", by: "\"\(placeholder)\"")
    }
    return Announcement(topic: "", text: text).object
  }

  /// Reads `{{ {'red': red, …} | to_json }}`, as zwave-js-ui has it.
  private static func dictionary(_ text: String, parts: [String: String]) -> JSONValue? {
    for suffix in ["|to_json}}", "|tojson}}"] where text.hasSuffix(suffix) && text.hasPrefix("{{") {
      var inner = String(text.dropFirst(2).dropLast(suffix.count)).replaced("'", by: "\"")
      for (name, placeholder) in parts {
        inner = inner.replaced(":\(name)", by: ":\"\(placeholder)\"")
      }
      return Announcement(topic: "", text: inner).object
    }
    return nil
  }
}

extension Announcement {
  /// The payload, if it is a JSON object.
  fileprivate var object: JSONValue? {
    guard let value = try? json().get(), value.members != nil else { return nil }
    return value
  }
}

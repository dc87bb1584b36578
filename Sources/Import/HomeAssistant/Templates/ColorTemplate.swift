// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import Values

/// Home Assistant's templates of colors, as fields of a device file.
enum ColorTemplate {
  private static let probes: [Color] = [(255, 128, 0), (1, 2, 3), (0, 0, 255), (18, 171, 52)].map {
    .rgb(red: $0.0, green: $0.1, blue: $0.2)
  }

  /// The variables of a template for a color.
  private static func variables(_ color: Color) -> [String: TemplateValue] {
    let (rgb, hsb) = (color.rgb, color.hsb)
    return [
      "red": .integer(Int64(rgb.red)), "green": .integer(Int64(rgb.green)),
      "blue": .integer(Int64(rgb.blue)), "hue": .number(hsb.hue), "sat": .number(hsb.saturation),
    ]
  }

  /// How a template encodes a color, and its payload; `nil` if a device file cannot express it.
  ///
  /// `others` are variables that are defined too.
  static func command(_ template: Template, _ others: [String: TemplateValue] = [:])
    -> (encoding: ColorEncoding, payload: JSONValue)?
  {
    let texts = probes.compactMap { color in
      template.rendered(variables(color).merging(others) { $1 })
    }
    guard texts.count == probes.count, Set(texts).count == texts.count else { return nil }
    for encoding in [ColorEncoding.hex, .commaRGB, .rgb, .channels, .commaHS, .hs] {
      let wires = probes.map { $0.wire(encoding) }
      let bare = wires.map { $0.string ?? "" }
      // OpenBeken takes `#rrggbb` too, without the two white channels.
      if texts == bare || texts == bare.map({ "\($0)0000" }) && encoding == .hex {
        return (encoding, .string(PayloadTemplate.placeholder))
      }
      let structures = texts.compactMap { PayloadShape.json($0) }
      guard structures.count == texts.count, let payload = payload(structures, wires) else {
        continue
      }
      return (encoding, payload)
    }
    return nil
  }

  /// The common structure of payloads with `$value`, or its members, in the place of colors.
  private static func payload(_ payloads: [JSONValue], _ wires: [JSONValue]) -> JSONValue? {
    .common(payloads) { parts in
      if zip(parts, wires).allSatisfy({ $0.isEquivalent(to: $1) }) {
        return .string(PayloadTemplate.placeholder)
      }
      let name = wires[0].members?.map(\.name).first { name in
        zip(parts, wires).allSatisfy { part, wire in
          part.double.flatMap { part in wire[name]?.double.map { (part - $0).magnitude <= 0.5 } }
            ?? false
        }
      }
      return name.map { .string("\(PayloadTemplate.placeholder)/\($0)") }
    }
  }

  /// The place of a color in reports, and the form in which it is decoded; `nil` if a device file
  /// cannot express it.
  ///
  /// `forms` are what templates return: `r,g,b` or `h,s`.
  static func state(_ template: Template, _ form: ColorEncoding)
    -> (path: [JSONValue], decoding: ColorEncoding)?
  {
    let report = ReportTemplate(template)
    var path: [JSONValue]
    switch report.place {
    case .presence: return nil
    case .value(let place): path = place
    case .several(let places):
      // The longest paths are those of the channels.
      guard let first = places.max(by: { $0.count < $1.count }), !first.isEmpty else { return nil }
      path = first.dropLast()
      guard places.allSatisfy({ $0.dropLast() == path[...] || path.starts(with: $0) }) else {
        return nil
      }
    }
    for encoding in [form, .hex, .rgb, .channels, .hs, .commaRGB] {
      for wire in forms(of: encoding) {
        let isSame = probes.allSatisfy { color in
          let reported = wire(color)
          let text = report.result(of: [(path, reported)])
          let seen = Color(wire: reported, encoding: encoding)
          let parts = text?.split(separator: ",").count
          return text.flatMap { Color(wire: .string($0), encoding: form) }?.rgb == seen?.rgb
            && seen != nil && parts == (form == .commaHS ? 2 : 3)
        }
        // What has more parts cannot be read.
        let isOpen = report.facts.arguments.contains { argument in
          guard let text = wire(probes[0]).string, !argument.isEmpty else { return false }
          let longer = JSONValue.string(text + argument + "1")
          return report.result(of: [(path, longer)]) == report.result(of: [(path, .string(text))])
            && Color(wire: longer, encoding: encoding)?.rgb != probes[0].rgb
        }
        if isSame, !isOpen { return (path, encoding) }
      }
    }
    return nil
  }

  /// What devices report for a color in an encoding.
  private static func forms(of encoding: ColorEncoding) -> [(Color) -> JSONValue] {
    let plain = { (color: Color) in color.wire(encoding) }
    func renamed(_ names: [String]) -> (Color) -> JSONValue {
      { color in
        .object(
          zip(names, plain(color).members ?? []).map { JSONValue.Member($0, $1.value) }
        )
      }
    }
    switch encoding {
    case .hex: return [plain, { .string((plain($0).string ?? "").dropFirst().uppercased()) }]
    case .rgb: return [plain, renamed(["red", "green", "blue"])]
    case .hs: return [plain, renamed(["hue", "saturation"])]
    default: return [plain]
    }
  }
}

extension ImportedProperty {
  /// The path of a color in reports; sets `decode` if they have another form than commands.
  mutating func path(ofColor template: Template?, _ form: ColorEncoding) -> [String]? {
    guard let state = template.flatMap({ ColorTemplate.state($0, form) }) else { return nil }
    if self["encode"] != .string(state.decoding.rawValue) {
      self["decode"] = .string(state.decoding.rawValue)
    }
    return state.path.map { $0.scalarText ?? "" }
  }
}

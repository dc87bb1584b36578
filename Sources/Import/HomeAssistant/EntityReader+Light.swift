// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
import JSON

/// Lights with the schemas `default` and `json`; the schema `template` cannot be imported.
extension EntityReader {
  mutating func readLight() {
    switch text("schema") ?? "default" {
    case "json": readJSONLight()
    case "default", "basic": readPlainLight()
    default:
      report("its schema '\(Excerpt.of(text("schema") ?? ""))' is not supported", .leftOut)
    }
    relateColors()
  }

  // MARK: - The schema "default"

  private mutating func readPlainLight() {
    if config["command_topic"] != nil, let power = boolean("power") {
      var keys = TopicKeys()
      keys.commandTemplate = Optional.none
      keys.stateTemplate =
        config["state_value_template"] == nil ? "value_template" : "state_value_template"
      add(power, by: keys)
    }
    if config["brightness_command_topic"] != nil,
      let brightness = upTo("brightness", number("brightness_scale") ?? 255)
    {
      add(brightness, by: TopicKeys("brightness"))
    }
    if config["color_temp_command_topic"] != nil, let temperature = colorTemperature() {
      add(temperature, by: TopicKeys("color_temp"))
    }
    readPlainColor()
    if config["white_command_topic"] != nil,
      let white = upTo("white", number("white_scale") ?? 255)
    {
      var keys = TopicKeys("white")
      keys.commandTemplate = Optional.none
      add(white, by: keys)
    }
    if config["effect_command_topic"] != nil, let effect = choice("effect", "effect_list") {
      add(effect, by: TopicKeys("effect"))
    }
  }

  private mutating func readPlainColor() {
    for key in ["hs", "xy", "rgbw", "rgbww"] where config["\(key)_command_topic"] != nil {
      if config["rgb_command_topic"] == nil {
        report("color: the form '\(key)' on a topic of its own is not supported", .leftOut)
      }
    }
    guard config["rgb_command_topic"] != nil else { return }
    let template = (text("rgb_command_template") ?? "").filter { !$0.isWhitespace }
    let encodings = [
      "": "r,g,b", "{{red}},{{green}},{{blue}}": "r,g,b",
      "{{'#%02x%02x%02x'|format(red,green,blue)}}": "hex",
      "{{\"#%02x%02x%02x\"|format(red,green,blue)}}": "hex",
      "{\"r\":{{red}},\"g\":{{green}},\"b\":{{blue}}}": "rgb",
    ]
    guard let encoding = encodings[template] else {
      report(
        "color: its rgb_command_template cannot be translated: \(Excerpt.of(template))",
        .leftOut
      )
      return
    }
    var color = ImportedProperty("color", type: "color")
    color["encode"] = .string(encoding)
    var keys = TopicKeys("rgb")
    keys.commandTemplate = Optional.none
    add(color, by: keys)
  }

  // MARK: - The schema "json"

  private mutating func readJSONLight() {
    let modes = Set(config.elements("supported_color_modes")?.compactMap(\.string) ?? [])
    func has(_ flag: String, _ names: Set<String>) -> Bool {
      config[flag] == true || !modes.isDisjoint(with: names)
    }
    if let power = boolean("power") { add(power, member: "state") }
    let dimmable: Set = [
      "brightness", "color_temp", "hs", "xy", "rgb", "rgbw", "rgbww", "white",
    ]
    if has("brightness", dimmable),
      let brightness = upTo("brightness", number("brightness_scale") ?? 255)
    {
      add(brightness, member: "brightness")
    }
    if has("color_temp", ["color_temp"]), let temperature = colorTemperature() {
      add(temperature, member: "color_temp")
    }
    let forms: [(encode: String, flag: String, modes: Set<String>)] = [
      ("rgb", "rgb", ["rgb", "rgbw", "rgbww"]), ("xy", "xy", ["xy"]), ("hs", "hs", ["hs"]),
    ]
    if let form = forms.first(where: { has($0.flag, $0.modes) }) {
      var color = ImportedProperty("color", type: "color")
      color["encode"] = .string(form.encode)
      add(color, member: "color")
    }
    if config["effect"] == true, config["effect_list"] != nil,
      let effect = choice("effect", "effect_list")
    {
      add(effect, member: "effect")
    }
  }

  // MARK: - Values

  private mutating func upTo(_ id: String, _ scale: Double) -> ImportedProperty? {
    var range = NumberRange(low: 0, high: scale, step: 1)
    range.unit = scale == 100 ? "%" : Optional.none
    switch range.property(id, report: { _ in }) {
    case .success(let property): return property
    case .failure(let refusal):
      report("\(id): \(refusal.reason)", .refused)
      return nil
    }
  }

  private mutating func colorTemperature() -> ImportedProperty? {
    guard config["color_temp_kelvin"] == true else {
      return number(
        "color_temp",
        low: ("min_mireds", 153),
        high: ("max_mireds", 500),
        step: Optional.none,
        unit: "mired"
      )
    }
    return number(
      "color_temp",
      low: ("min_kelvin", 2000),
      high: ("max_kelvin", 6535),
      step: Optional.none,
      unit: "K"
    )
  }
}

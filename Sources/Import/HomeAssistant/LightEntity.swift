// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import Values

/// Lights with the schemas `default` and `json`.
enum LightEntity {
  static func read(_ reader: inout EntityReader) {
    switch reader.text("schema") ?? "default" {
    case "json": readJSONLight(&reader)
    case "template": TemplateLightEntity.read(&reader)
    case "default", "basic": readPlainLight(&reader)
    default:
      reader.report(
        "its schema '\(Excerpt.of(reader.text("schema") ?? ""))' is not supported",
        .leftOut
      )
    }
    reader.relateColors()
  }

  // MARK: - The schema "default"

  private static func readPlainLight(_ reader: inout EntityReader) {
    if reader.config["command_topic"] != nil, var power = reader.boolean("power") {
      var keys = TopicKeys()
      keys.meaning = StateMeaning(power)
      turnOnByBrightness(&power, reader)
      keys.commandTemplate = Optional.none
      keys.stateTemplate =
        reader.config["state_value_template"] == nil ? "value_template" : "state_value_template"
      reader.add(power, by: keys)
    }
    if reader.config["brightness_command_topic"] != nil,
      var brightness = upTo(&reader, "brightness", reader.number("brightness_scale") ?? 255)
    {
      if reader.text("on_command_type") == "brightness", !reader.properties.isEmpty {
        brightness["implies"] = .object(["power": true])
      }
      reader.add(brightness, by: TopicKeys("brightness"))
    }
    if reader.config["color_temp_command_topic"] != nil, let temperature = colorTemperature(&reader)
    {
      reader.add(temperature, by: TopicKeys("color_temp"))
    }
    readPlainColor(&reader)
    if reader.config["white_command_topic"] != nil,
      let white = upTo(&reader, "white", reader.number("white_scale") ?? 255)
    {
      var keys = TopicKeys("white")
      keys.commandTemplate = Optional.none
      reader.add(white, by: keys)
    }
    if reader.config["effect_command_topic"] != nil,
      let effect = reader.choice("effect", "effect_list")
    {
      reader.add(effect, by: TopicKeys("effect"))
    }
    if reader.config["color_mode_state_topic"] != nil {
      reader.add(ImportedProperty("color_mode", type: "text"), by: TopicKeys("color_mode"))
    }
  }

  /// Turns a lamp on as Home Assistant does where a brightness on the same topic is all that it
  /// takes: with the highest one.
  private static func turnOnByBrightness(_ power: inout ImportedProperty, _ reader: EntityReader) {
    guard reader.text("on_command_type") == "brightness",
      reader.text("command_topic") == reader.text("brightness_command_topic")
    else { return }
    power["on"] = JSONValue(shortest: reader.number("brightness_scale") ?? 255)
    power["excludes"] = ["brightness"]
  }

  private static func readPlainColor(_ reader: inout EntityReader) {
    let hasRGB = reader.config["rgb_command_topic"] != nil
    for key in ["xy", "rgbw", "rgbww"] where reader.config["\(key)_command_topic"] != nil {
      reader.skip(["\(key)_command_topic", "\(key)_state_topic"])
      if !hasRGB {
        reader.report("color: the form '\(key)' on a topic of its own is not supported", .leftOut)
      }
    }
    if !hasRGB { return readHue(&reader) }
    var color = ImportedProperty("color", type: "color", ["encode": "r,g,b"])
    var payload = JSONValue.string(PayloadTemplate.placeholder)
    if let (text, template) = reader.template("rgb_command_template") {
      guard let command = template.flatMap({ ColorTemplate.command($0) }) else {
        return reader.reportCommand("color", "rgb_command_template", text, limit: 60)
      }
      payload = command.payload
      color["encode"] = .string(command.encoding.rawValue)
    }
    var path: [String]? = []
    if let (text, template) = reader.template("rgb_value_template") {
      path = color.path(ofColor: template, .commaRGB)
      if path == nil { reader.reportState("color", "rgb_value_template", text) }
    }
    reader.skip(["rgb_state_topic", "hs_command_topic", "hs_state_topic"])
    reader.add(
      color,
      payload: payload,
      command: "rgb_command_topic",
      state: "rgb_state_topic",
      at: path
    )
  }

  /// A color as hue and saturation, `32,100`.
  private static func readHue(_ reader: inout EntityReader) {
    guard reader.config["hs_command_topic"] != nil else { return }
    if let (text, _) = reader.template("hs_command_template") {
      return reader.reportCommand("color", "hs_command_template", text, limit: 60)
    }
    var color = ImportedProperty("color", type: "color", ["encode": "h,s"])
    var path: [String]? = []
    if let (text, template) = reader.template("hs_value_template") {
      path = color.path(ofColor: template, .commaHS)
      if path == nil { reader.reportState("color", "hs_value_template", text) }
    }
    let bare = JSONValue.string(PayloadTemplate.placeholder)
    reader.add(color, payload: bare, command: "hs_command_topic", state: "hs_state_topic", at: path)
  }

  // MARK: - The schema "json"

  private static func readJSONLight(_ reader: inout EntityReader) {
    let modes = Set(reader.config.elements("supported_color_modes")?.compactMap(\.string) ?? [])
    func has(_ flag: String, _ names: Set<String>) -> Bool {
      reader.config[flag] == true || !modes.isDisjoint(with: names)
    }
    if let power = reader.boolean("power") { reader.add(power, member: "state") }
    // Every command but off has the state ON: `async_turn_on` in mqtt/light/schema_json.py.
    let isSwitched = !reader.properties.isEmpty
    let state = JSONValue.Member("state", .string(PayloadTemplate.implied("power")))
    func add(_ property: ImportedProperty) {
      var property = property
      if isSwitched { property["implies"] = .object(["power": true]) }
      reader.add(property, member: property.id, besides: isSwitched ? [state] : [])
    }
    let dimmable: Set = [
      "brightness", "color_temp", "hs", "xy", "rgb", "rgbw", "rgbww", "white",
    ]
    if has("brightness", dimmable),
      let brightness = upTo(&reader, "brightness", reader.number("brightness_scale") ?? 255)
    {
      add(brightness)
    }
    if has("color_temp", ["color_temp"]), let temperature = colorTemperature(&reader) {
      add(temperature)
    }
    let forms: [(encode: String, flag: String, modes: Set<String>)] = [
      ("rgb", "rgb", ["rgb", "rgbw", "rgbww"]), ("xy", "xy", ["xy"]), ("hs", "hs", ["hs"]),
    ]
    if let form = forms.first(where: { has($0.flag, $0.modes) }) {
      add(ImportedProperty("color", type: "color", ["encode": .string(form.encode)]))
    }
    if reader.config["effect"] == true, reader.config["effect_list"] != nil,
      let effect = reader.choice("effect", "effect_list")
    {
      add(effect)
    }
    reader.merges = true
    reader.options = ["transition"]
  }

  // MARK: - Values

  private static func upTo(_ reader: inout EntityReader, _ id: String, _ scale: Double)
    -> ImportedProperty?
  {
    var range = NumberRange(low: 0, high: scale, step: 1)
    range.unit = scale == 100 ? "%" : Optional.none
    do throws(Rejection) {
      return try range.property(id) { _ in }
    } catch {
      reader.report("\(id): \(error.reason)", .refused)
      return nil
    }
  }

  /// The white tone, in mireds or kelvin.
  static func colorTemperature(_ reader: inout EntityReader) -> ImportedProperty? {
    let isKelvin = reader.config["color_temp_kelvin"] == true
    let ending = isKelvin ? "kelvin" : "mireds"
    return reader.number(
      "color_temp",
      low: ("min_\(ending)", isKelvin ? 2000 : 153),
      high: ("max_\(ending)", isKelvin ? 6535 : 500),
      unit: isKelvin ? "K" : "mired"
    )
  }
}

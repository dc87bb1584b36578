// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// The properties of each platform.
extension EntityReader {
  /// Platforms without commands.
  static let readOnly: Set = [
    "sensor", "binary_sensor", "device_tracker", "event", "device_automation", "tag", "camera",
    "image", "update", "weather",
  ]

  /// Creates the entity's properties.
  mutating func read() {
    switch entity.platform {
    case "switch": readSwitch()
    case "light": readLight()
    case "number": readNumber()
    case "select": readSelect()
    case "text": readText()
    case "button": readAction("press", [("press", "payload_press", "PRESS")])
    case "scene": readAction("activate", [("activate", "payload_on", "ON")])
    case "cover", "valve": readCover()
    case "fan": readFan()
    case "climate", "water_heater": readClimate()
    case "humidifier": readHumidifier()
    case "lock": readLock()
    case "siren": readSiren()
    case "vacuum": readVacuum()
    case "alarm_control_panel":
      report("an alarm system must not be debounced", .leftOut)
    default:
      report("entities of the kind '\(Excerpt.of(entity.platform))' are not supported", .leftOut)
    }
    if config["retain"] == true, !properties.isEmpty {
      report("it asks for retained commands; Settle never retains one, so that none is replayed")
    }
  }

  private mutating func readSwitch() {
    isSingle = true
    guard let power = boolean("power") else { return }
    add(power, by: TopicKeys())
    checkWords(on: "state_on", off: "state_off")
  }

  private mutating func readNumber() {
    isSingle = true
    let value = number(
      "value",
      low: ("min", 1),
      high: ("max", 100),
      step: ("step", 1),
      unit: text("unit_of_measurement")
    )
    if let value { add(value, by: TopicKeys()) }
  }

  private mutating func readSelect() {
    isSingle = true
    if let value = choice("value", "options") { add(value, by: TopicKeys()) }
  }

  private mutating func readText() {
    isSingle = true
    guard text("mode") != "password" else {
      report("a password, which its target would show to everybody", .leftOut)
      return
    }
    add(ImportedProperty("value", type: "text"), by: TopicKeys())
  }

  private mutating func readAction(
    _ id: String,
    _ words: [(word: String, key: String, standard: JSONValue)]
  ) {
    isSingle = true
    if let property = action(id, words) { add(property, by: TopicKeys()) }
  }

  private mutating func readLock() {
    isSingle = true
    let lock = boolean(
      "lock",
      on: "payload_lock",
      off: "payload_unlock",
      standard: ("LOCK", "UNLOCK")
    )
    guard let lock else { return }
    add(lock, by: TopicKeys())
    let words = [("state_locked", "LOCKED", "on"), ("state_unlocked", "UNLOCKED", "off")]
    let isSame = words.allSatisfy { key, standard, field in
      (config[key] ?? .string(standard)).isSameScalar(as: lock[field] ?? .null)
    }
    if !isSame, !properties.isEmpty {
      dropState("lock: without a state, whose reports use other words than its commands")
    }
  }

  private mutating func readSiren() {
    isSingle = true
    guard let power = boolean("power") else { return }
    guard config["command_template"] == nil else { return add(power, by: TopicKeys()) }
    add(power, member: "state")
  }

  private mutating func readVacuum() {
    var keys = TopicKeys()
    keys.commandTemplate = Optional.none
    let command = action(
      "command",
      [
        ("start", "payload_start", "start"), ("pause", "payload_pause", "pause"),
        ("stop", "payload_stop", "stop"),
        ("return_to_base", "payload_return_to_base", "return_to_base"),
        ("clean_spot", "payload_clean_spot", "clean_spot"), ("locate", "payload_locate", "locate"),
      ]
    )
    if let command { add(command, by: keys) }
    guard config["set_fan_speed_topic"] != nil,
      var speed = choice("fan_speed", "fan_speed_list")
    else { return }
    keys.command = "set_fan_speed_topic"
    keys.state = "state_topic"
    keys.stateTemplate = Optional.none
    speed["type"] = "choice"
    add(speed, by: keys)
    if let last = properties.indices.last, properties[last]["state"] != nil,
      let topic = topic("state_topic")
    {
      replaceState(ofPropertyAt: last, topic: topic, pointer: "/fan_speed")
    }
  }

  private mutating func readCover() {
    let isValve = entity.platform == "valve"
    var keys = TopicKeys()
    keys.commandTemplate = Optional.none
    if isValve, config["reports_position"] == true {
      addPosition("position", by: keys)
      return
    }
    let words: [(word: String, key: String, standard: JSONValue)] = [
      ("OPEN", "payload_open", "OPEN"), ("CLOSE", "payload_close", "CLOSE"),
      ("STOP", "payload_stop", isValve ? .null : "STOP"),
    ]
    let present = words.filter { $0.standard != .null || config[$0.key] != nil }
    if var command = action("command", present) {
      let names = command["values"]?.elements?.compactMap(\.string)
      let urgent = names ?? command["values"]?.members?.map(\.name) ?? []
      command["urgent"] = .array(urgent.map { .string($0) })
      if urgent.contains("STOP") { command["aliases"] = ["stop"] }
      if config["set_position_topic"] != nil { command["ends"] = ["position"] }
      add(command, by: keys)
    }
    var position = TopicKeys()
    position.command = "set_position_topic"
    position.commandTemplate = "set_position_template"
    position.state = "position_topic"
    position.stateTemplate = "position_template"
    position.variables = ["value", "position"]
    if config["set_position_topic"] != nil { addPosition("position", by: position) }
    guard config["tilt_command_topic"] != nil else { return }
    var tilt = TopicKeys("tilt")
    tilt.state = "tilt_status_topic"
    tilt.stateTemplate = "tilt_status_template"
    tilt.variables = ["value", "tilt_position"]
    let made = number(
      "tilt",
      low: ("tilt_min", 0),
      high: ("tilt_max", 100),
      step: Optional.none,
      unit: "%"
    )
    if var made {
      made["policy"] = Self.position
      add(made, by: tilt)
      allowMovementTime()
    }
  }

  /// Adds a position from 0 (closed) to 100 (open), scaled to the device's own range.
  private mutating func addPosition(_ id: String, by keys: TopicKeys) {
    var range = NumberRange(low: 0, high: 100, step: 1)
    range.unit = "%"
    guard case .success(var position) = range.property(id, report: { _ in }) else { return }
    position["policy"] = Self.position
    let (open, closed) = (number("position_open") ?? 100, number("position_closed") ?? 0)
    let hasOwnScale = open != 100 || closed != 0
    if hasOwnScale, open != closed, config["set_position_template"] == nil {
      position["scale"] = .object([
        "from": [0, 100],
        "to": .array([JSONValue(shortest: closed), JSONValue(shortest: open)]),
      ])
      var bare = keys
      bare.stateTemplate = config["position_template"] == nil ? Optional.none : keys.stateTemplate
      add(position, by: bare)
      if let last = properties.indices.last, let topic = topic(keys.state),
        bare.stateTemplate == nil
      {
        replaceState(ofPropertyAt: last, topic: topic, pointer: "")
      }
    } else {
      add(position, by: keys)
    }
    allowMovementTime()
  }

  private mutating func readFan() {
    if config["command_topic"] != nil, let power = boolean("power") {
      var keys = TopicKeys()
      keys.stateTemplate = "state_value_template"
      add(power, by: keys)
    }
    if config["percentage_command_topic"] != nil {
      let speed = number(
        "speed",
        low: ("speed_range_min", 1),
        high: ("speed_range_max", 100),
        step: Optional.none,
        unit: number("speed_range_max") == nil ? "%" : Optional.none
      )
      if let speed { add(speed, by: TopicKeys("percentage")) }
    }
    readPreset()
    if config["oscillation_command_topic"] != nil {
      let swing = boolean(
        "oscillation",
        on: "payload_oscillation_on",
        off: "payload_oscillation_off",
        standard: ("oscillate_on", "oscillate_off")
      )
      if let swing { add(swing, by: TopicKeys("oscillation")) }
    }
    if config["direction_command_topic"] != nil {
      var direction = ImportedProperty("direction", type: "choice")
      direction["values"] = ["forward", "reverse"]
      add(direction, by: TopicKeys("direction"))
    }
  }

  private mutating func readPreset() {
    guard config["preset_mode_command_topic"] != nil,
      let preset = choice("preset", "preset_modes")
    else { return }
    add(preset, by: TopicKeys("preset_mode"))
  }

  private mutating func readHumidifier() {
    if let power = boolean("power") {
      var keys = TopicKeys()
      keys.stateTemplate = "state_value_template"
      add(power, by: keys)
    }
    addHumidity()
    guard config["mode_command_topic"] != nil, let mode = choice("mode", "modes") else { return }
    add(mode, by: TopicKeys("mode", stateTemplate: "state_template"))
  }

  private mutating func addHumidity() {
    guard config["target_humidity_command_topic"] != nil else { return }
    let humidity = number(
      "target_humidity",
      low: ("min_humidity", 0),
      high: ("max_humidity", 100),
      step: Optional.none,
      unit: "%"
    )
    guard var humidity else { return }
    humidity["policy"] = Self.setpoint
    add(humidity, by: TopicKeys("target_humidity", stateTemplate: "state_template"))
  }

  private mutating func readClimate() {
    if config["power_command_topic"] != nil, let power = boolean("power") {
      var keys = TopicKeys("power", stateTemplate: "state_template")
      keys.stateTemplate = "power_state_template"
      add(power, by: keys)
    }
    let unit = text("temperature_unit") == "F" ? "°F" : "°C"
    for (key, id) in [
      ("temperature", "target_temperature"), ("temperature_high", "target_temperature_high"),
      ("temperature_low", "target_temperature_low"),
    ] where config["\(key)_command_topic"] != nil {
      let isHeater = entity.platform == "water_heater"
      let made = number(
        id,
        low: ("min_temp", isHeater ? 43 : 7),
        high: ("max_temp", isHeater ? 60 : 35),
        step: ("temp_step", 1),
        unit: unit
      )
      guard var made else { continue }
      made["policy"] = Self.setpoint
      add(made, by: TopicKeys(key, stateTemplate: "state_template"))
    }
    readModes()
    addHumidity()
  }

  private mutating func readModes() {
    let standard: [JSONValue] = ["auto", "off", "cool", "heat", "dry", "fan_only"]
    if config["mode_command_topic"] != nil, var mode = choice("mode", "modes", standard: standard) {
      let ended = properties.map(\.id).filter { $0.hasPrefix("target_temperature") }
      if mode["values"]?.elements?.contains("off") == true, !ended.isEmpty {
        mode["urgent"] = ["off"]
        mode["ends"] = .array(ended.map { .string($0) })
      }
      add(mode, by: TopicKeys("mode", stateTemplate: "state_template"))
    }
    let others: [(key: String, id: String, list: String, standard: [JSONValue])] = [
      ("fan_mode", "fan_mode", "fan_modes", ["auto", "low", "medium", "high"]),
      ("swing_mode", "swing_mode", "swing_modes", ["on", "off"]),
    ]
    for row in others where config["\(row.key)_command_topic"] != nil {
      if let mode = choice(row.id, row.list, standard: row.standard) {
        add(mode, by: TopicKeys(row.key, stateTemplate: "state_template"))
      }
    }
    readPreset()
  }
}

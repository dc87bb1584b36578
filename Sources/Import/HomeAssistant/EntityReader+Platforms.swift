// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// What each platform can be told.
extension EntityReader {
  /// Platforms that only report.
  static let readOnly: Set = [
    "sensor", "binary_sensor", "device_tracker", "event", "device_automation", "tag", "camera",
    "image", "update", "weather",
  ]

  /// Builds the properties that the entity has.
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
      note("an alarm system is nothing to be debounced", .leftOut)
    default: note("entities of the kind '\(Excerpt.of(entity.platform))' are not known", .leftOut)
    }
    if config["retain"] == true, !properties.isEmpty {
      note("it asks for retained commands; Settle retains none, so that none is replayed")
    }
  }

  private mutating func readSwitch() {
    isSingle = true
    guard let power = boolean("power") else { return }
    add(power, by: Road())
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
    if let value { add(value, by: Road()) }
  }

  private mutating func readSelect() {
    isSingle = true
    if let value = choice("value", "options") { add(value, by: Road()) }
  }

  private mutating func readText() {
    isSingle = true
    guard text("mode") != "password" else {
      note("a password, which targets would show to everybody", .leftOut)
      return
    }
    add(ImportedProperty("value", type: "text"), by: Road())
  }

  private mutating func readAction(
    _ id: String,
    _ words: [(word: String, key: String, standard: JSONValue)]
  ) {
    isSingle = true
    if let property = action(id, words) { add(property, by: Road()) }
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
    add(lock, by: Road())
    let words = [("state_locked", "LOCKED", "on"), ("state_unlocked", "UNLOCKED", "off")]
    let isSame = words.allSatisfy { key, standard, field in
      (config[key] ?? .string(standard)).isSameScalar(as: lock[field] ?? .null)
    }
    if !isSame, !properties.isEmpty {
      dropState("lock: without a state, which is reported in other words than commands have")
    }
  }

  private mutating func readSiren() {
    isSingle = true
    guard let power = boolean("power") else { return }
    guard config["command_template"] == nil else { return add(power, by: Road()) }
    add(power, member: "state")
  }

  private mutating func readVacuum() {
    var road = Road()
    road.commandTemplate = Optional.none
    let command = action(
      "command",
      [
        ("start", "payload_start", "start"), ("pause", "payload_pause", "pause"),
        ("stop", "payload_stop", "stop"),
        ("return_to_base", "payload_return_to_base", "return_to_base"),
        ("clean_spot", "payload_clean_spot", "clean_spot"), ("locate", "payload_locate", "locate"),
      ]
    )
    if let command { add(command, by: road) }
    guard config["set_fan_speed_topic"] != nil,
      var speed = choice("fan_speed", "fan_speed_list")
    else { return }
    road.command = "set_fan_speed_topic"
    road.state = "state_topic"
    road.stateTemplate = Optional.none
    speed["type"] = "choice"
    add(speed, by: road)
    if let place = properties.indices.last, properties[place]["state"] != nil,
      let topic = topic("state_topic")
    {
      replaceState(ofPropertyAt: place, topic: topic, pointer: "/fan_speed")
    }
  }

  private mutating func readCover() {
    let isValve = entity.platform == "valve"
    var road = Road()
    road.commandTemplate = Optional.none
    if isValve, config["reports_position"] == true {
      addPosition("position", by: road)
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
      add(command, by: road)
    }
    var position = Road()
    position.command = "set_position_topic"
    position.commandTemplate = "set_position_template"
    position.state = "position_topic"
    position.stateTemplate = "position_template"
    position.variables = ["value", "position"]
    if config["set_position_topic"] != nil { addPosition("position", by: position) }
    guard config["tilt_command_topic"] != nil else { return }
    var tilt = Road("tilt")
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
      awaitMovement()
    }
  }

  /// A position from 0 (closed) to 100, whatever the device calls these.
  private mutating func addPosition(_ id: String, by road: Road) {
    var range = NumberRange(low: 0, high: 100, step: 1)
    range.unit = "%"
    guard case .success(var position) = range.property(id, note: { _ in }) else { return }
    position["policy"] = Self.position
    let (open, closed) = (number("position_open") ?? 100, number("position_closed") ?? 0)
    let hasOwnScale = open != 100 || closed != 0
    if hasOwnScale, open != closed, config["set_position_template"] == nil {
      position["scale"] = .object([
        "from": [0, 100],
        "to": .array([JSONValue(shortest: closed), JSONValue(shortest: open)]),
      ])
      var bare = road
      bare.stateTemplate = config["position_template"] == nil ? Optional.none : road.stateTemplate
      add(position, by: bare)
      if let place = properties.indices.last, let topic = topic(road.state),
        bare.stateTemplate == nil
      {
        replaceState(ofPropertyAt: place, topic: topic, pointer: "")
      }
    } else {
      add(position, by: road)
    }
    awaitMovement()
  }

  private mutating func readFan() {
    if config["command_topic"] != nil, let power = boolean("power") {
      var road = Road()
      road.stateTemplate = "state_value_template"
      add(power, by: road)
    }
    if config["percentage_command_topic"] != nil {
      let speed = number(
        "speed",
        low: ("speed_range_min", 1),
        high: ("speed_range_max", 100),
        step: Optional.none,
        unit: number("speed_range_max") == nil ? "%" : Optional.none
      )
      if let speed { add(speed, by: Road("percentage")) }
    }
    readPreset()
    if config["oscillation_command_topic"] != nil {
      let swing = boolean(
        "oscillation",
        on: "payload_oscillation_on",
        off: "payload_oscillation_off",
        standard: ("oscillate_on", "oscillate_off")
      )
      if let swing { add(swing, by: Road("oscillation")) }
    }
    if config["direction_command_topic"] != nil {
      var direction = ImportedProperty("direction", type: "choice")
      direction["values"] = ["forward", "reverse"]
      add(direction, by: Road("direction"))
    }
  }

  private mutating func readPreset() {
    guard config["preset_mode_command_topic"] != nil,
      let preset = choice("preset", "preset_modes")
    else { return }
    add(preset, by: Road("preset_mode"))
  }

  private mutating func readHumidifier() {
    if let power = boolean("power") {
      var road = Road()
      road.stateTemplate = "state_value_template"
      add(power, by: road)
    }
    addHumidity()
    guard config["mode_command_topic"] != nil, let mode = choice("mode", "modes") else { return }
    add(mode, by: Road("mode", stateTemplate: "state_template"))
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
    add(humidity, by: Road("target_humidity", stateTemplate: "state_template"))
  }

  private mutating func readClimate() {
    if config["power_command_topic"] != nil, let power = boolean("power") {
      var road = Road("power", stateTemplate: "state_template")
      road.stateTemplate = "power_state_template"
      add(power, by: road)
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
      add(made, by: Road(key, stateTemplate: "state_template"))
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
      add(mode, by: Road("mode", stateTemplate: "state_template"))
    }
    let others: [(key: String, id: String, list: String, standard: [JSONValue])] = [
      ("fan_mode", "fan_mode", "fan_modes", ["auto", "low", "medium", "high"]),
      ("swing_mode", "swing_mode", "swing_modes", ["on", "off"]),
    ]
    for row in others where config["\(row.key)_command_topic"] != nil {
      if let mode = choice(row.id, row.list, standard: row.standard) {
        add(mode, by: Road(row.key, stateTemplate: "state_template"))
      }
    }
    readPreset()
  }
}

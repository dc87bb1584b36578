// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
internal import Values

/// Relays, lamps, shutters and the fan of a Tasmota device, by the kinds of its relays (`rl`).
struct TasmotaRelays {
  private(set) var properties: [ImportedProperty] = []
  /// What is imported in part, and why.
  private(set) var notes: [String] = []
  /// Whether commands share a message.
  let merges: Bool

  private let config: JSONValue
  private let topics: TasmotaTopics
  private let kinds: [Int]

  private enum Kind {
    static let relay = 1
    static let light = 2
    static let shutter = 3
  }

  init(_ config: JSONValue, topics: TasmotaTopics) {
    self.config = config
    self.topics = topics
    kinds = (config.elements("rl") ?? []).prefix(32).map { Int(exactly: $0.double ?? 0) ?? 0 }
    let isFan = config["if"] == 1
    merges =
      Self.knowsJSON(config["sw"]?.string ?? "") && kinds.contains(Kind.light) && !isFan
    if isOption("4") {
      notes.append("with SetOption4 its replies have topics of their own; only power is confirmed")
    }
    let lights = kinds.indices.filter { kinds[$0] == Kind.light && !isFan }
    for place in lights { readLight(at: place, of: lights) }
    // A fan's lamp has no levels.
    let switches = kinds.indices.filter { place in
      kinds[place] == Kind.relay || isFan && kinds[place] == Kind.light
    }
    for place in switches { addPower(at: place) }
    readShutters()
    if isFan { readFan() }
  }

  /// Whether a version has the command `Json`, which carries several commands: 10.1.0.6 and newer.
  private static func knowsJSON(_ version: String) -> Bool {
    let parts = version.split { !$0.isNumber }.prefix(4).map { Int($0) ?? 0 }
    for (mine, least) in zip(parts, [10, 1, 0, 6]) where mine != least { return mine > least }
    return parts.count == 4
  }

  private func isOption(_ number: String) -> Bool { config["so"]?[number] == 1 }

  private var count: Int { kinds.count { $0 != 0 } }

  private func label(_ place: Int) -> String? {
    guard count > 1, let names = config.elements("fn"), place < names.count else { return nil }
    return PlainText.nonEmpty(names[place].string, limit: 60)
  }

  // MARK: - Properties

  /// Adds what a command sets and `RESULT` and `STATE` report.
  private mutating func add(
    _ property: ImportedProperty,
    command: String,
    shown: String? = nil,
    canMerge: Bool = true
  ) {
    var made = property
    let value = JSONValue.string("$value")
    if merges, canMerge {
      made.setCommand(to: topics.command("Json"), .object([.init(command, value)]))
    } else {
      made.setCommand(to: topics.command(command))
    }
    let pointer = PlaceholderText.pointer([shown ?? command])
    func source(_ topic: String, _ more: [JSONValue.Member] = []) -> JSONValue {
      .object([.init("topic", .string(topic)), .init("value", .string(pointer))] + more)
    }
    let get = JSONValue.object(["topic": .string(topics.command(command)), "payload": ""])
    if isOption("4") {
      made["state"] = source(topics.state)
      made["confirm"] = "none"
    } else {
      made["state"] = .array([source(topics.result, [.init("get", get)]), source(topics.state)])
    }
    properties.append(made)
  }

  private mutating func addPower(at place: Int, ending: String? = nil) {
    // The relays of a fan are not listed.
    let isOnly = count == 1 && config["if"] != 1
    let ending = ending ?? (count == 1 ? "" : "_\(place + 1)")
    let command = isOnly ? "POWER" : "POWER\(place + 1)"
    var made = ImportedProperty("power\(ending)", type: "boolean")
    let words = config.elements("state") ?? []
    made["off"] = words.first ?? "OFF"
    made["on"] = words.count > 1 ? words[1] : "ON"
    made["name"] = label(place).map { .string($0) }
    let isLight = kinds[place] == Kind.light
    guard isOption("4") else { return add(made, command: command, canMerge: isLight) }
    made.setCommand(to: topics.command(command))
    made.setState(on: topics.status(command))
    properties.append(made)
  }

  private func level(_ id: String) -> ImportedProperty {
    ImportedProperty(id, type: "integer", ["range": [0, 100], "step": 1, "unit": "%"])
  }

  // MARK: - Lamps

  /// Reads a lamp, as `light.py` of hatasmota does.
  private mutating func readLight(at place: Int, of lights: [Int]) {
    let kind = Int(exactly: config["lt_st"]?.double ?? 0) ?? 0
    let isAlone = lights.count == 1
    let ending = isAlone ? "" : "_\(place + 1)"
    var brightness = level("brightness\(ending)")
    let implied: JSONValue? =
      isOption("20") ? Optional.none : .object([.init("power\(ending)", true)])
    brightness["implies"] = implied
    // The level goes before the power: a lamp that is turned on does not show the old level first.
    if isOption("68") {
      add(brightness, command: "Channel\(place + 1)")
      return addPower(at: place, ending: ending)
    }
    let isSplit = config["lk"] != 1 && kind >= 4 && !isAlone
    let isColor = isSplit ? place == lights[0] : kind >= 3
    let isWhite = isSplit ? place != lights[0] && kind == 5 : kind == 2 || kind == 5
    let dimmer =
      isSplit ? "Dimmer\(place == lights[0] ? 1 : 2)" : config["ty"] == 1 ? "Dimmer3" : "Dimmer"
    brightness["aliases"] = isAlone ? ["dimmer"] : Optional.none
    add(brightness, command: dimmer, shown: isSplit ? dimmer : "Dimmer")
    if isWhite {
      var white = ImportedProperty("color_temp\(ending)", type: "integer")
      white["range"] = isOption("82") ? [200, 380] : [153, 500]
      white["step"] = 1
      white["unit"] = "mired"
      white.setDisplay()
      white["implies"] = implied
      add(white, command: "CT")
    }
    if isColor {
      var color = ImportedProperty("color\(ending)", type: "color")
      color["encode"] = "r,g,b"
      color["decode"] = "h,s"
      color["implies"] = implied
      if isSplit { notes.append("setting the color turns off the white of the same lamp") }
      if isWhite { color["excludes"] = .array([.string("color_temp\(ending)")]) }
      add(color, command: "Color2", shown: "HSBColor")
    }
    addPower(at: place, ending: ending)
  }

  // MARK: - Shutters and fans

  private mutating func readShutters() {
    var number = 0
    var place = 0
    while place < kinds.count {
      guard kinds[place] == Kind.shutter else {
        place += 1
        continue
      }
      number += 1
      place += 2
      let ending = kinds.count { $0 == Kind.shutter } > 2 ? "_\(number)" : ""
      addShutter(number, ending)
    }
  }

  private mutating func addShutter(_ number: Int, _ ending: String) {
    let options = config.elements("sho") ?? []
    let flags = number <= options.count ? Int(exactly: options[number - 1].double ?? 0) ?? 0 : 0
    let position = "ShutterPosition\(number)"
    var made = level("position\(ending)")
    made["policy"] = .object(["delay": "500ms", "max_wait": "none"])
    // ShutterInvert: 0 is open.
    if flags & 1 == 1 { made["scale"] = .object(["from": [0, 100], "to": [100, 0]]) }
    addMoving(made, command: position, pointer: ["Shutter\(number)", "Position"])
    let tilts = config.elements("sht") ?? []
    let own = number <= tilts.count ? tilts[number - 1].elements : nil
    let bounds = (own ?? []).compactMap(\.double)
    if bounds.count >= 2, bounds[0] < bounds[1] {
      var tilt = ImportedProperty("tilt\(ending)", type: "integer")
      tilt["range"] = .array([JSONValue(shortest: bounds[0]), JSONValue(shortest: bounds[1])])
      tilt["step"] = 1
      tilt["policy"] = .object(["delay": "500ms", "max_wait": "none"])
      addMoving(tilt, command: "ShutterTilt\(number)", pointer: ["Shutter\(number)", "Tilt"])
    }
    var action = ImportedProperty("command\(ending)", type: "action")
    if ending.isEmpty { action["aliases"] = ["stop"] }
    action["values"] = ["OPEN", "CLOSE", "STOP"]
    action["urgent"] = ["OPEN", "CLOSE", "STOP"]
    action["ends"] = .array([.string("position\(ending)")])
    action.setCommand(to: topics.command(position))
    properties.append(action)
  }

  private mutating func addMoving(
    _ property: ImportedProperty,
    command: String,
    pointer: [String]
  ) {
    var made = property
    made.setCommand(to: topics.command(command))
    let get = JSONValue.object(["topic": .string(topics.command(command)), "payload": ""])
    made.setState(on: topics.result, at: PlaceholderText.pointer(pointer), get: get)
    made["confirm"] = .object(["within": "60s", "tolerance": 2])
    properties.append(made)
  }

  private mutating func readFan() {
    let speed = ImportedProperty("fan_speed", type: "integer", ["range": [0, 3], "step": 1])
    add(speed, command: "FanSpeed", canMerge: false)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import JSON
package import LastOut
package import Values

/// The properties of a device that make one lamp, by their places in its list of properties.
package struct Light: Hashable, Sendable {
  /// Switches the lamp; `nil` where a brightness of 0 is off.
  package private(set) var power: Int?
  package private(set) var brightness: Int?
  private(set) var temperature: Int?
  private(set) var color: Int?
  /// What the device says of its color mode.
  private(set) var mode: Int?
  private(set) var effect: Int?
  /// What the names of its properties end with, such as `_l1` for those of an endpoint.
  let ending: String

  /// The property that names the lamp.
  package var main: Int { power ?? brightness ?? 0 }

  /// The lamps of a device.
  package static func all(in device: Device) -> [Light] {
    let properties = device.properties
    var used: Set<Int> = []
    var lights: [Light] = []
    for ending in properties.filter({ $0.kind == .boolean }).endings(of: ["power", "state"]) {
      let light = Light(of: device, ending: ending, used: used)
      guard light.isLamp(device) else { continue }
      used.formUnion(light.places)
      lights.append(light)
    }
    // A switch of any name that a file says is one of a lamp.
    for (place, property) in properties.enumerated()
    where property.kind == .boolean && !property.isReadOnly && !used.contains(place)
      && device.entityClass(of: property) == "lamp"
    {
      lights.append(Light(switchedBy: place, ending: "_\(property.id)"))
    }
    return lights
  }

  /// All places of its properties.
  package var places: [Int] {
    [power, brightness, temperature, color, mode, effect].compactMap { $0 }
  }

  private init(switchedBy power: Int, ending: String) {
    (self.power, self.ending) = (power, ending)
  }

  private init(of device: Device, ending: String, used: Set<Int>) {
    let properties = device.properties
    func find(
      _ names: [String],
      isReadOnly: Bool = false,
      _ fits: (Property) -> Bool
    ) -> Int? {
      let free = properties.indices.filter {
        !used.contains($0) && properties[$0].isReadOnly == isReadOnly && fits(properties[$0])
      }
      let wanted = Set(names.map { $0 + ending })
      return free.first { wanted.contains(properties[$0].id) }
        ?? free.first { properties[$0].isCalled(wanted) }
    }
    self.ending = ending
    let others: Set = ["fan", "lock", "siren", "valve"]
    power = find(["power", "state", "on"]) { property in
      property.kind == .boolean && !property.isLock
        && !(device.entityClass(of: property).map { others.contains($0) } ?? false)
    }
    brightness = find(["brightness", "level"]) { $0.kind.numberRule != nil }
    temperature = find(["color_temp", "color_temperature", "ct"]) { $0.kind.isWhiteTone }
    color = find(["color", "colour"]) { $0.kind == .color }
    mode = find(["color_mode"], isReadOnly: true) { $0.kind.words != nil || $0.kind == .text }
    let hasWords = { (property: Property) in property.kind.words?.isEmpty == false }
    // Endpoints may have their effects in common.
    effect =
      find(["effect"], hasWords)
      ?? (ending.isEmpty
        ? nil
        : properties.firstIndex {
          !$0.isReadOnly && hasWords($0) && $0.isCalled(["effect"])
        })
  }

  /// Whether it has what makes a lamp: a switch and something to adjust, or a brightness from 0.
  private func isLamp(_ device: Device) -> Bool {
    if let power {
      return brightness != nil || temperature != nil || color != nil
        || device.entityClass(of: device.properties[power]) == "lamp"
    }
    guard let brightness else { return false }
    let property = device.properties[brightness]
    return property.isCalled(["brightness\(ending)"])
      && property.kind.numberRule?.range?.lowerBound == 0
  }

  /// The form in which Home Assistant has its colors: `xy`, `hs` or `rgb`, which is its mode too.
  func colorMode(_ properties: [Property]) -> ColorEncoding? {
    color.map { place in
      switch properties[place].wire.reportedEncoding {
      case .xy: .xy
      case .hs, .hsb, .commaHS, .homieHSV: .hs
      case .rgb, .hex, .commaRGB, .homie, .channels: .rgb
      }
    }
  }
}

extension ValueKind {
  /// The words of a choice or an action.
  var words: [String]? {
    switch self {
    case .choice(let words), .action(let words): words
    case .number, .integer, .boolean, .text, .color: nil
    }
  }

  /// Whether numbers are mireds or kelvin.
  ///
  /// Other units, such as percent, make a number entity.
  var isWhiteTone: Bool {
    guard let rule = numberRule, let range = rule.range else { return false }
    if rule.isKelvin { return range.lowerBound > 0 }
    return range.lowerBound >= 50 && range.upperBound <= 1000
  }
}

extension NumberRule {
  var isKelvin: Bool {
    unit == "K" || unit == "kelvin" || (range?.lowerBound ?? 0) >= 1000
  }
}

/// The announcement of a lamp, in the JSON schema.
extension Light {
  /// The fields beside those that every entity has.
  ///
  /// `topic` is that of the main property's target.
  func fields(_ device: Device, below topic: String) -> [JSONValue.Member] {
    let properties = device.properties
    var fields: [JSONValue.Member] = [
      .init("schema", "json"), .init("command_topic", .string("\(topic)/light/set")),
      .init("state_topic", .string("\(topic)/light")), .init("optimistic", false),
    ]
    if let brightness {
      fields += [
        .init("brightness", true),
        .init("brightness_scale", JSONValue(shortest: properties[brightness].brightnessScale)),
      ]
    }
    fields.append(.init("supported_color_modes", .array(modes(properties).map { .string($0) })))
    if let temperature, let rule = properties[temperature].kind.numberRule {
      fields += Self.mireds(rule)
    }
    if let effect, let words = properties[effect].kind.words {
      fields += [
        .init("effect", true), .init("effect_list", .array(words.map { .string($0) })),
      ]
    }
    // Home Assistant offers both where it is not told otherwise.
    fields += [
      .init("flash", .boolean(flashes(properties).isEmpty == false)),
      .init("transition", .boolean(device.options.contains("transition"))),
    ]
    return fields
  }

  /// The color modes, in Home Assistant's words.
  private func modes(_ properties: [Property]) -> [String] {
    var modes: [String] = []
    if temperature != nil { modes.append("color_temp") }
    if let mode = colorMode(properties) { modes.append(mode.rawValue) }
    if !modes.isEmpty { return modes }
    return [brightness == nil ? "onoff" : "brightness"]
  }

  /// The effects that flash the lamp, for a short and for a long time.
  private func flashes(_ properties: [Property]) -> [String] {
    let words = effect.flatMap { properties[$0].kind.words } ?? []
    return ["blink", "breathe"].filter { words.contains($0) }
  }

  /// The range of white tones in mireds, whole ones within the range.
  private static func mireds(_ rule: NumberRule) -> [JSONValue.Member] {
    guard let range = rule.range else { return [] }
    let (low, high) =
      rule.isKelvin
      ? (1_000_000 / range.upperBound, 1_000_000 / range.lowerBound)
      : (range.lowerBound, range.upperBound)
    return [
      .init("min_mireds", .integer(Int64(low.rounded(.up)))),
      .init("max_mireds", .integer(Int64(high.rounded(.down)))),
    ]
  }
}

extension Property {
  /// The highest level of a brightness, as Home Assistant has it: its levels are whole, from 1.
  var brightnessScale: Double {
    let high = kind.numberRule?.range?.upperBound ?? 255
    return high < 2 || high != high.rounded() ? 255 : high
  }
}

/// What Home Assistant asks of a lamp in the JSON schema.
extension Light {
  /// The members of a device-level set that a command stands for.
  ///
  /// Levels and white tones beyond the range become its nearest end, because Home Assistant rounds
  /// them. What the lamp does not have is left out. `last` is the last level of a lamp without a
  /// switch of its own, to which it is switched on.
  package func members(
    for command: JSONValue,
    _ properties: [Property],
    options: [String],
    last: Double?
  ) -> [JSONValue.Member] {
    var members: [JSONValue.Member] = []
    func add(_ place: Int?, _ value: JSONValue?) {
      guard let place, let value else { return }
      members.append(.init(properties[place].id, value))
    }
    let isOn = command["state"]?.string.map { $0 == "ON" }
    let level = brightness.flatMap { inRange(command["brightness"], properties[$0]) }
    if let power {
      add(power, isOn.map { .boolean($0) })
      add(brightness, level)
    } else if let brightness {
      let high = properties[brightness].kind.numberRule?.range?.upperBound ?? 255
      add(brightness, isOn.map { $0 ? level ?? JSONValue(shortest: last ?? high) : 0 } ?? level)
    }
    add(temperature, temperature.flatMap { tone(command["color_temp"], properties[$0]) })
    add(color, command["color"])
    let flashes = flashes(properties)
    // Home Assistant sends how many seconds a short flash takes, which are 2, or a long one.
    let isLong = (command["flash"]?.double ?? 0) >= 10
    let flash = isLong ? flashes.last : flashes.first
    add(effect, command["effect"] ?? (command["flash"] == nil ? nil : flash.map { .string($0) }))
    for option in options {
      if let value = command[option] { members.append(.init(option, value)) }
    }
    return members
  }

  /// A level within the range; one above 0, because 0 may mean off.
  private func inRange(_ shown: JSONValue?, _ property: Property) -> JSONValue? {
    guard let shown = shown?.double, let range = property.kind.numberRule?.range else {
      return shown
    }
    // On another scale, four digits are finer than any level of Home Assistant.
    let level = (shown / property.brightnessScale * range.upperBound * 10_000).rounded() / 10_000
    return JSONValue(shortest: Self.within(range, level))
  }

  private func tone(_ mireds: JSONValue?, _ property: Property) -> JSONValue? {
    guard let mireds = mireds?.double, mireds > 0, let rule = property.kind.numberRule,
      let range = rule.range
    else { return mireds }
    let tone = rule.isKelvin ? (1_000_000 / mireds).rounded() : mireds
    return JSONValue(shortest: Self.within(range, tone))
  }

  private static func within(_ range: ClosedRange<Double>, _ number: Double) -> Double {
    min(max(number, range.lowerBound), range.upperBound)
  }
}

/// What a lamp shows in Home Assistant's JSON schema.
extension Light {
  /// Where one of its properties stands.
  package struct Reading: Sendable {
    /// The target; `nil` where nothing is known.
    package var value: Value?
    /// Whether the device has yet to show the target.
    package var isPending: Bool
    /// When the phase or the reported value last changed.
    package var since: Moment?

    package init(_ value: Value?, isPending: Bool = false, since: Moment? = nil) {
      self.value = value
      self.isPending = isPending
      self.since = since
    }
  }

  /// The message that shows the lamp; `nil` where nothing is known of it.
  package func state(
    _ properties: [Property],
    _ reading: (Int) -> Reading
  ) -> JSONValue? {
    let readings = places.map { reading($0) }
    guard readings.contains(where: { $0.value != nil }) else { return nil }
    let isOn = isOn(properties, reading)
    var members: [JSONValue.Member] = [
      .init("state", isOn.map { $0 ? "ON" : "OFF" } ?? .null)
    ]
    if let brightness, let level = number(brightness, reading), level > 0 {
      members.append(.init("brightness", Self.shown(level, properties[brightness])))
    }
    members += colors(properties, reading)
    if let effect, case .text(let word) = reading(effect).value {
      members.append(.init("effect", .string(word)))
    }
    return .object(members)
  }

  private func number(_ place: Int, _ reading: (Int) -> Reading) -> Double? {
    if case .number(let number) = reading(place).value { number } else { nil }
  }

  /// Whether the lamp is on; what a device reports of its brightness counts where it does not
  /// report its power.
  private func isOn(_ properties: [Property], _ reading: (Int) -> Reading) -> Bool? {
    let level = brightness.flatMap { number($0, reading) }
    guard let power else { return level.map { $0 > 0 } }
    let switched = reading(power)
    let known: Bool? = if case .boolean(let flag) = switched.value { flag } else { nil }
    // A group has no states of its own, but confirms what its members report.
    let isReported = !properties[power].states.isEmpty || properties[power].confirm != nil
    guard !isReported, let brightness, let level else { return known }
    guard let known, let since = switched.since, since > reading(brightness).since ?? .zero else {
      return level > 0
    }
    return known
  }

  /// A brightness in Home Assistant's levels.
  private static func shown(_ level: Double, _ property: Property) -> JSONValue {
    let scale = property.brightnessScale
    let high = property.kind.numberRule?.range?.upperBound ?? 255
    guard scale != high else { return JSONValue(shortest: level) }
    return JSONValue(shortest: max((level / high * scale).rounded(), 1))
  }

  // MARK: - Color

  /// The color mode, and the white tone or the color that it is about.
  private func colors(
    _ properties: [Property],
    _ reading: (Int) -> Reading
  ) -> [JSONValue.Member] {
    let white = temperature.flatMap { number($0, reading) }
    let tint: Color? = color.flatMap {
      if case .color(let color) = reading($0).value { color } else { nil }
    }
    if let temperature, let white, tint == nil || showsWhite(reading) {
      let isKelvin = properties[temperature].kind.numberRule?.isKelvin == true
      let mireds = isKelvin && white > 0 ? 1_000_000 / white : white
      return [
        .init("color_mode", "color_temp"),
        .init("color_temp", .integer(Int64(mireds.rounded()))),
      ]
    }
    if let tint, let mode = colorMode(properties) {
      return [
        .init("color_mode", .string(mode.rawValue)), .init("color", tint.wire(mode)),
      ]
    }
    guard temperature == nil, color == nil else { return [] }
    return [.init("color_mode", brightness == nil ? "onoff" : "brightness")]
  }

  /// Whether a lamp with both a white tone and a color shows the white tone.
  ///
  /// What was requested and is not shown yet counts first, then what the device says of its mode,
  /// then what changed last. A report that changes both is about the white tone: bridges also say
  /// which color a white tone is.
  private func showsWhite(_ reading: (Int) -> Reading) -> Bool {
    guard let temperature, let color else { return temperature != nil }
    let (white, tint) = (reading(temperature), reading(color))
    if white.isPending != tint.isPending { return white.isPending }
    if !white.isPending, let mode, case .text(let word) = reading(mode).value {
      // Zigbee2MQTT before 1.19 reports the number of the Zigbee specification.
      return ["color_temp", "white", "2"].contains(word)
    }
    return (white.since ?? .zero) >= (tint.since ?? .zero)
  }
}

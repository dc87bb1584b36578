// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration
internal import Devices
internal import JSON
internal import Values

/// Converts the exposes of a Zigbee2MQTT device to properties.
struct ExposeReader {
  /// The bits of an expose's `access`.
  enum Access {
    static let published = 1
    static let settable = 2
    static let gettable = 4
  }

  var properties: [ImportedProperty] = []
  /// The names of readings that are left out.
  var skipped: [String] = []
  let includesDiagnostic: Bool
  /// Values that are left out or imported in part.
  private(set) var diagnostics: [(kind: ImportDiagnostic.Kind, name: String, reason: String)] = []
  var names = PropertyNames()

  init(_ exposes: [JSONValue], includesDiagnostic: Bool = false) {
    self.includesDiagnostic = includesDiagnostic
    for expose in exposes.prefix(500) { read(expose, owner: nil) }
    relate()
  }

  private mutating func read(_ expose: JSONValue, owner: String?) {
    let type = expose["type"]?.string ?? ""
    if let features = expose.elements("features"), Self.owners.contains(type), owner == nil {
      for feature in features.prefix(100) { read(feature, owner: type) }
      return
    }
    let property = expose["property"]?.string ?? expose["name"]?.string ?? ""
    let name = PlainText.clean(property, limit: 60)
    guard !property.isEmpty, property.utf8.count <= 200 else {
      diagnostics.append((.refused, type.isEmpty ? "an expose" : type, "it has no usable name"))
      return
    }
    let access = Self.access(of: expose) ?? Access.published
    guard access & Access.settable != 0 || Self.hasSettableFeature(expose) else {
      return addReading(expose, type: type, property: property, owner: owner)
    }
    do throws(Rejection) {
      let made = try makeProperty(
        expose,
        type: type,
        property: property,
        owner: owner,
        access: access
      )
      if let made { add(made, of: expose, property: property, access: access, owner: owner) }
    } catch {
      if !error.isMistake, access & Access.published != 0 {
        return addReading(expose, type: type, property: property, owner: owner)
      }
      let isKnown = Self.unsupported.contains(type) || !error.isMistake
      diagnostics.append((isKnown ? .leftOut : .refused, name, error.reason))
    }
  }

  private static let owners: Set = ["light", "switch", "fan", "cover", "lock", "climate"]
  private static let unsupported: Set = ["composite", "list"]

  private static func access(of expose: JSONValue) -> Int? {
    expose["access"]?.double.flatMap { Int(exactly: $0) }
  }

  private static func hasSettableFeature(_ expose: JSONValue) -> Bool {
    (expose.elements("features") ?? []).contains {
      (access(of: $0) ?? 0) & Access.settable != 0
    }
  }

  /// Creates the property with its type; `nil` if an earlier expose already has it.
  private mutating func makeProperty(
    _ expose: JSONValue,
    type: String,
    property: String,
    owner: String?,
    access: Int
  ) throws(Rejection) -> ImportedProperty? {
    let id = wantedID(expose, property: property, owner: owner)
    switch type {
    case "numeric": return try number(expose, id, owner: owner)
    case "binary": return try boolean(expose, id)
    case "enum":
      let isMomentary =
        access & (Access.published | Access.gettable) == 0
        || (owner == "cover" && id.hasPrefix("command"))
      return try words(expose, id, type: isMomentary ? "action" : "choice")
    case "text": return ImportedProperty(id, type: "text")
    case "composite" where owner == "light" && property.hasPrefix("color"):
      return color(expose, id)
    case "composite":
      if property == "warning", let siren = siren(expose, id) { return siren }
      throw Rejection("a group of values that are set together")
    case "list": throw Rejection("a list")
    default: throw Rejection("its type '\(Excerpt.of(type))' is not supported")
    }
  }

  /// The identifier that profiles use for a common feature, otherwise the announced name.
  func wantedID(_ expose: JSONValue, property: String, owner: String?) -> String {
    let name = expose["name"]?.string ?? property
    // `state_l1` is the state of endpoint `l1`; any other name is kept.
    guard property == name || property.hasPrefix("\(name)_") else { return property }
    let tail = property.dropFirst(name.count)
    switch (owner, name) {
    case ("light", "state"), ("switch", "state"), ("fan", "state"): return "power\(tail)"
    case ("lock", "state"): return "lock\(tail)"
    case ("cover", "state"): return "command\(tail)"
    case ("climate", "occupied_heating_setpoint"), ("climate", "current_heating_setpoint"):
      let id = "target_temperature\(tail)"
      return names.has(id) ? property : id
    case ("climate", "system_mode"): return "mode\(tail)"
    default: return property
    }
  }

  /// Without a step only levels of lamps and covers are whole, as `light` and `cover` of
  /// Zigbee2MQTT's converters send them.
  private mutating func number(
    _ expose: JSONValue,
    _ id: String,
    owner: String?
  ) throws(Rejection) -> ImportedProperty {
    let isLevel = owner == "light" || owner == "cover"
    let range = NumberRange(
      low: expose["value_min"]?.double,
      high: expose["value_max"]?.double,
      step: expose["value_step"]?.double,
      unit: expose["unit"]?.string,
      isWhole: expose["value_step"] == nil && !isLevel ? false : Optional.none
    )
    var made = try range.property(id) { diagnostics.append((.partly, id, $0)) }
    made.setDisplay()
    return made
  }

  func boolean(_ expose: JSONValue, _ id: String) throws(Rejection) -> ImportedProperty {
    var property = ImportedProperty(id, type: "boolean")
    let (on, off) = (expose["value_on"] ?? true, expose["value_off"] ?? false)
    guard on.isWord, off.isWord else {
      throw Rejection("its values are not words, numbers, true or false")
    }
    guard !on.isSameScalar(as: off) else { throw Rejection("on and off are the same") }
    if on != true { property["on"] = on }
    if off != false { property["off"] = off }
    return property
  }

  private func words(
    _ expose: JSONValue,
    _ id: String,
    type: String
  ) throws(Rejection) -> ImportedProperty {
    // An empty word is what some devices report for none.
    let announced = (expose.elements("values") ?? []).filter { $0 != "" }
    guard !announced.isEmpty else {
      throw Rejection("its list of values is empty", isMistake: false)
    }
    guard let values = ChoiceWords.field(announced) else {
      throw Rejection("its list of values holds more than words")
    }
    return ImportedProperty(id, type: type, ["values": values])
  }

  /// Creates one property for all color forms of a lamp; `nil` for the second and later ones.
  private func color(_ expose: JSONValue, _ id: String) -> ImportedProperty? {
    // The form that is announced first is the one that the lamp prefers.
    if properties.contains(where: { $0.id == id && $0["type"] == "color" }) { return nil }
    let isXY = expose["name"]?.string == "color_xy"
    return ImportedProperty(id, type: "color", ["encode": isXY ? "xy" : "hs"])
  }

  /// A siren, whose words are its tones and the end of one.
  ///
  /// Source: `warning` in `converters/toZigbee.ts` of zigbee-herdsman-converters, where every other
  /// member has a default.
  private func siren(_ expose: JSONValue, _ id: String) -> ImportedProperty? {
    let mode = expose.elements("features")?.first { $0["name"] == "mode" }
    guard let values = ChoiceWords.field(mode?.elements("values") ?? []) else { return nil }
    return ImportedProperty(id, type: "action", ["class": "siren", "values": values])
  }

  private mutating func add(
    _ made: ImportedProperty,
    of expose: JSONValue,
    property name: String,
    access: Int,
    owner: String?
  ) {
    var made = made
    made.describe(expose, property: name, owner: owner)
    made.id = names.unique(made.id)
    if made.id != name, names.reserve(name) { made["aliases"] = .array([.string(name)]) }
    let value = JSONValue.string(PayloadTemplate.placeholder)
    let sent = made["class"] == "siren" ? .object(["mode": value]) : value
    made.setCommand(to: "$topic/set", .object([.init(name, sent)]))
    let isAction = made["type"] == "action"
    if access & (Access.published | Access.gettable) != 0, !isAction {
      let get: JSONValue? =
        access & Access.gettable == 0
        ? Optional.none
        : .object([
          "topic": "$topic/get", "payload": .object([.init(name, "")]),
        ])
      made.setState(on: "$topic", at: PlaceholderText.pointer([name]), get: get)
    }
    setDefaults(&made, owner: owner)
    properties.append(made)
  }

  /// Sets policy, confirmation and urgent values that suit the kind of property.
  private mutating func setDefaults(_ property: inout ImportedProperty, owner: String?) {
    let stem = property.id.prefix { $0 != "_" }
    var confirm: JSONValue?
    switch (owner, stem) {
    case ("cover", "position"), ("cover", "tilt"):
      property["policy"] = .object(["delay": "500ms", "max_wait": "none"])
      confirm = .object(["within": "60s", "tolerance": 2])
    case ("cover", "command"):
      if property.id == "command", names.reserve("stop") { property["aliases"] = ["stop"] }
      let words =
        property["values"]?.elements ?? property["values"]?.members?.map { .string($0.name) }
      property["urgent"] = .array(words ?? [])
    case ("climate", _)
    where property.id.has("temperature") || property.id.has("setpoint"):
      guard ["number", "integer"].contains(property["type"]?.string) else { break }
      property["policy"] = .object(["delay": "800ms", "max_wait": "none"])
      confirm = .object(["within": "30s"])
    case ("climate", "mode"):
      if property["values"]?.elements?.contains("off") == true { property["urgent"] = ["off"] }
      confirm = .object(["within": "30s"])
    case ("light", "brightness"):
      property["implies"] = .object([
        .init("power\(property.id.dropFirst(stem.count))", true)
      ])
    case ("light", "color") where property["type"] == "color":
      confirm = .object(["tolerance": 0.01])
    case ("light", "color") where property.id.hasPrefix("color_temp"):
      if property["unit"] == "mired" { confirm = .object(["tolerance": 2]) }
    default: break
    }
    if property["state"] != nil, let confirm { property["confirm"] = confirm }
  }

  /// Sets `excludes`, `implies` and `ends` between the properties of the device.
  private mutating func relate() {
    let ids = Set(properties.filter { !$0.isReadOnly }.map(\.id))
    for index in properties.indices {
      // A lamp has power and brightness at the same endpoint.
      properties[index].renameOthers { ids.contains($0) ? $0 : Optional.none }
      let property = properties[index]
      let tail = property.id.firstIndex(of: "_").map { String(property.id[$0...]) } ?? ""
      if property["type"] == "color" {
        let partner = "color_temp" + property.id.dropFirst("color".count)
        if !property.isReadOnly,
          let other = properties.firstIndex(where: { $0.id == partner && !$0.isReadOnly })
        {
          properties[index]["excludes"] = .array([.string(partner)])
          properties[other]["excludes"] = .array([.string(property.id)])
        }
      }
      guard property["urgent"] != nil else { continue }
      let ended = property["type"] == "action" ? ["position" + tail] : ["target_temperature" + tail]
      let present = ended.filter { id in properties.contains { $0.id == id && !$0.isReadOnly } }
      if !present.isEmpty { properties[index]["ends"] = .array(present.map { .string($0) }) }
    }
  }
}

/// Exposes that cannot be set become read-only properties.
extension ExposeReader {
  /// Readings about the device itself, and events: an event has no value that lasts.
  private static let diagnostic: Set = [
    "linkquality", "update", "update_available", "last_seen", "device_temperature",
    "power_outage_count", "trigger_count",
  ]
  /// Readings that count although Zigbee2MQTT calls them diagnostic.
  private static let wanted: Set = ["battery", "battery_low"]

  /// Adds whether there is a newer firmware, as Zigbee2MQTT reports it for devices that it can
  /// update.
  mutating func addUpdate() {
    var made = ImportedProperty(names.unique("update"), type: "choice")
    made["category"] = "diagnostic"
    made["values"] = ["idle", "available", "scheduled", "updating"]
    made.setState(on: "$topic", at: "/update/state")
    properties.append(made)
  }

  /// Adds a reading, unless it is diagnostic.
  mutating func addReading(
    _ expose: JSONValue,
    type: String,
    property: String,
    owner: String?
  ) {
    let name = expose["name"]?.string ?? property
    // What a remote does is what it is for; Home Assistant shows it as events.
    let isEvent = name == "action" && type == "enum"
    let isDiagnostic =
      Self.diagnostic.contains(name) || name.hasPrefix("action") && !isEvent
      || expose["category"] == "diagnostic" && !Self.wanted.contains(name) && !isEvent
    guard includesDiagnostic || !isDiagnostic,
      var made = reading(expose, type: type, id: readingID(expose, property, owner))
    else { return skipped.append(PlainText.clean(property, limit: 60)) }
    if isEvent {
      made["class"] = "remote"
    } else if !Self.wanted.contains(name) {
      made.describe(expose, property: property, owner: owner)
    }
    made.id = names.unique(made.id)
    if made.id != property, names.reserve(property) {
      made["aliases"] = .array([.string(property)])
    }
    made.setState(on: "$topic", at: PlaceholderText.pointer([property]))
    properties.append(made)
  }

  /// The identifier; the power that a plug measures is not the `power` that switches it.
  private func readingID(_ expose: JSONValue, _ property: String, _ owner: String?) -> String {
    if expose["type"] == "numeric", expose["name"] == "power" { return "active_\(property)" }
    return wantedID(expose, property: property, owner: owner)
  }

  /// `nil` for a list and a group of values.
  private func reading(_ expose: JSONValue, type: String, id: String) -> ImportedProperty? {
    switch type {
    case "numeric":
      var made = ImportedProperty(id, type: "number")
      made["unit"] = PlainText.nonEmpty(expose["unit"]?.string, limit: 20).map { .string($0) }
      return made
    case "binary":
      // true and false stay what the device says, also where its "on" is false, as for a contact.
      let words = [expose["value_on"], expose["value_off"]]
      if words.allSatisfy({ $0 == true || $0 == false }) {
        return ImportedProperty(id, type: "boolean")
      }
      return try? boolean(expose, id)
    case "enum":
      guard let values = ChoiceWords.field(expose.elements("values") ?? []) else {
        return ImportedProperty(id, type: "text")
      }
      return ImportedProperty(id, type: "choice", ["values": values])
    case "text": return ImportedProperty(id, type: "text")
    default: return nil
    }
  }
}

extension ImportedProperty {
  /// Keeps what an expose says of its name, its category and what it is for.
  fileprivate mutating func describe(_ expose: JSONValue, property: String, owner: String?) {
    let ending = expose["endpoint"]?.string.map { " \($0)" } ?? ""
    if let label = PlainText.nonEmpty(expose["label"]?.string, limit: 60), id == property,
      owner == nil || owner == "climate", label + ending != Identifiers.title(of: id)
    {
      self["name"] = .string(label + ending)
    }
    if let category = expose["category"], category == "config" || category == "diagnostic" {
      self["category"] = category
    }
    let stated = expose["homeassistant"]?["device_class"] ?? expose["homeassistant"]?["deviceClass"]
    if let word = stated?.string, DeviceClass.words.contains(word) { self["class"] = .string(word) }
    // The speeds of a fan are a choice of words, which does not look like one.
    if owner == "fan", expose["name"] == "mode" { self["class"] = "fan" }
    if owner == "lock", id.hasPrefix("lock") { self["class"] = "lock" }
    // That of an endpoint is not known by its name.
    if expose["name"] == "contact", id != "contact" { self["class"] = "door" }
  }
}

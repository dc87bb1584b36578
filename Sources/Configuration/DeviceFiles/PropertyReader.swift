// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
import JSON
internal import LastOut
internal import Values

/// Reads the properties of one device, both its own and those of its profile.
struct PropertyReader {
  let context: DeviceContext
  let placeholders: Placeholders
  let ttl: Duration
  /// Whether the device's properties are restored where they do not say otherwise.
  var restores = false
  let problems: Problems
  /// Whether the device names a profile that there is none of, so that anything may be in it.
  var isProfileUnknown = false

  /// Reads the properties in order: the profile's first, then the device's own.
  func properties(
    of device: Section,
    device id: String,
    chain: [ProfileStore.Profile]
  ) -> [Property] {
    let layers = device.all("properties").filter { isMapping($0) }
    guard !layers.isEmpty else {
      if device["properties"] == nil, !isProfileUnknown {
        device.missing("properties", "device '\(id)' needs some, or a profile")
      }
      return []
    }
    let inherited = layers.filter { layer in chain.contains { $0.node["properties"] === layer } }
    var order: [String] = []
    var nodes: [String: [YAMLNode.Pair]] = [:]
    for layer in layers.reversed() {
      for pair in layer.pairs ?? [] {
        if nodes[pair.key] == nil { order.append(pair.key) }
        nodes[pair.key, default: []].insert(pair, at: 0)
      }
    }
    let inheritedIDs = inherited.flatMap { $0.pairs?.map(\.key) ?? [] }
    var properties: [Property] = []
    var sections: [String: Section] = [:]
    for name in order {
      guard let pairs = nodes[name], let section = section(pairs, inherited: inheritedIDs) else {
        continue
      }
      sections[name] = section
      if let property = property(pairs[0], section, inherited: inheritedIDs, chain: chain) {
        properties.append(property)
      }
    }
    if order.isEmpty {
      problems.add(layers[0].position, "properties: device '\(id)' has none")
    }
    checkAliases(properties, sections)
    return relate(properties, sections, declared: order)
  }

  /// The layers of one property; `nil` when `none` removes it.
  private func section(_ pairs: [YAMLNode.Pair], inherited: [String]) -> Section? {
    let first = pairs[0]
    if first.value.text == "none" {
      if !inherited.contains(first.key) {
        problems.add(
          first.value.position,
          "'none' removes a property of the profile; it has no "
            + "'\(Excerpt.of(first.key))'",
          suggestion: Suggestion.nearest(to: first.key, in: inherited)
        )
      }
      return nil
    }
    if let problem = Identifiers.problem(inProperty: first.key) {
      problems.add(first.keyPosition, problem.message, suggestion: problem.suggestion)
    }
    let what = "property '\(Excerpt.of(first.key))'"
    return Section(checking: pairs.map(\.value), .property, problems, what: what)
  }

  /// Reads all keys of one property, so that every mistake is reported; `nil` after some of them.
  private func property(
    _ pair: YAMLNode.Pair,
    _ section: Section,
    inherited: [String],
    chain: [ProfileStore.Profile]
  ) -> Property? {
    let isTyped = section["type"] != nil
    if !isTyped { reportMissingType(of: pair, section, inherited: inherited, chain: chain) }
    let kindReader = KindReader(section: section, problems: problems)
    let before = problems.count
    let kind = kindReader.kind()
    let wire = kind.map { kindReader.wire(for: $0) }
    let isSound = problems.count == before
    let states = StateReader(placeholders: placeholders, problems: problems).sources(section)
    let (name, aliases) = (section.text("name"), aliases(section))
    let (deviceClass, category) = (section.deviceClass(), section.category())
    let lacksCommand = isReadOnly(section, type: kindReader.typeName)
    if lacksCommand, isTyped, !isProfileUnknown, checkReadOnly(section, at: pair) {
      guard let kind, let wire else { return nil }
      var property = Property(readOnly: pair.key, kind: kind)
      property.name = name
      (property.deviceClass, property.category) = (deviceClass, category)
      property.aliases = aliases
      property.wire = wire
      property.states = states
      return property
    }
    let commandReader = CommandReader(
      baseTopic: context.baseTopic,
      placeholders: placeholders,
      problems: problems
    )
    let isAction = kindReader.typeName == "action"
    let command =
      lacksCommand
      ? nil : commandReader.endpoint(section, at: pair.keyPosition, isAction: isAction)
    if isAction, let node = section["state"], node.text != "none" {
      problems.add(node.position, "state: an action is momentary and has no state")
    }
    let hasState = section["state"].map { $0.text != "none" } ?? isProfileUnknown
    let confirm = confirmation(section, hasState: hasState)
    let policy = policy(section, type: kindReader.typeName)
    let always = section.flag("always")
    let restore = restore(section, hasState: hasState, isAction: isAction)
    let own = section.duration("ttl")
    let hold = HoldReader(section: section).rule(of: pair.key)
    let urgent = urgent(section, isSound ? kind : nil)
    if let command { checkReports(states, apartFrom: command, section) }
    guard let kind, let wire, let command else { return nil }
    var property = Property(
      id: pair.key,
      kind: kind,
      policy: policy,
      command: command,
      ttl: own ?? ttl
    )
    property.name = name
    (property.deviceClass, property.category) = (deviceClass, category)
    property.wire = wire
    if isSound { checkParts(of: property, section) }
    property.states = states
    property.confirm = confirm
    property.always = always ?? false
    property.restore = restore
    property.hold = hold
    property.aliases = aliases
    property.urgent = urgent
    return property
  }

  private func reportMissingType(
    of pair: YAMLNode.Pair,
    _ section: Section,
    inherited: [String],
    chain: [ProfileStore.Profile]
  ) {
    guard !section.hasMisspelled("type"), !isProfileUnknown else { return }
    let isNew = !chain.isEmpty && !inherited.contains(pair.key)
    let origin =
      isNew ? "; profile '\(chain[0].name)' has no '\(Excerpt.of(pair.key))' to build on" : ""
    problems.add(
      pair.keyPosition,
      "property '\(Excerpt.of(pair.key))': 'type' is missing; allowed: "
        + Section.list(KeyTable.policies.keys) + origin,
      suggestion: isNew ? Suggestion.nearest(to: pair.key, in: inherited) : nil
    )
  }

  /// On the topic of its commands a gateway would receive them as reports, and confirm itself.
  private func checkReports(
    _ states: [StateSource],
    apartFrom command: CommandEndpoint,
    _ section: Section
  ) {
    guard let node = section["state"], states.contains(where: { $0.topic == command.topic }) else {
      return
    }
    problems.add(
      node.position,
      "state: '\(Excerpt.of(command.topic))' is the topic of the commands, so the gateway would take "
        + "its own commands for reports; name the topic on which the device reports, or 'state: none'"
    )
  }

  /// A placeholder such as `$value/r` stands for a member, which only some forms of a color have.
  private func checkParts(of property: Property, _ section: Section) {
    let parts = property.command.payload.parts
    guard !parts.isEmpty, let node = section["command"] else { return }
    guard case .color = property.kind else {
      problems.add(node.position, "payload: only a color has members such as '$value/r'")
      return
    }
    let sample = property.wireValue(of: .color(.rgb(red: 0, green: 0, blue: 0)))
    for part in parts where part.value(in: sample) == nil {
      problems.add(
        node.position,
        "payload: '$value\(Excerpt.of(part.text))' is not in a color with 'encode: "
          + "\(property.wire.encoding.rawValue)', which is \(Excerpt.of(JSONWriter.text(sample)))"
      )
    }
  }

  private func policy(_ section: Section, type: String) -> Policy {
    var fields = PolicyFields()
    for node in section.all("policy") {
      if let stated = PolicyFields(node, problems) { fields = fields.over(stated) }
    }
    return fields.applied(to: context.policies.policy(forType: type))
  }

  private func confirmation(_ section: Section, hasState: Bool) -> Confirmation? {
    guard let node = section["confirm"] else { return hasState ? Confirmation() : nil }
    if node.text == "none" { return nil }
    guard let fields = section.nested("confirm", .confirm) else { return nil }
    if !hasState, !section.hasMisspelled("state") {
      problems.add(node.position, "confirm: there is no 'state' that could confirm a command")
    }
    var confirm = Confirmation()
    if let within = fields.duration("within", atLeast: .milliseconds(1)) { confirm.within = within }
    if let retries = fields.integer("retries", in: 0...100) { confirm.retries = retries }
    let backoff = fields.number("backoff", expected: "1 to 10") { (1...10).contains($0) }
    if let backoff { confirm.backoff = backoff }
    let tolerance = fields.number("tolerance", expected: "0 or more") { $0 >= 0 }
    if let tolerance { confirm.tolerance = tolerance }
    return hasState ? confirm : nil
  }

  private func restore(_ section: Section, hasState: Bool, isAction: Bool) -> Bool {
    let isStated = section.flag("restore")
    guard hasState, !isAction else {
      if isStated == true, let node = section["restore"] {
        problems.add(
          node.position,
          isAction
            ? "restore: an action is momentary, so there is nothing to restore"
            : "restore: there is no 'state' that would show what the device has"
        )
      }
      return false
    }
    return isStated ?? restores
  }

  private func aliases(_ section: Section) -> [String] {
    var aliases: [String] = []
    for alias in section.words("aliases") ?? [] {
      if let problem = Identifiers.problem(inProperty: alias.text) {
        problems.add(
          alias.node.position,
          "aliases: \(problem.message)",
          suggestion: problem.suggestion
        )
      } else {
        aliases.append(alias.text)
      }
    }
    return aliases
  }

  /// The urgent values; without a kind only their form is checked.
  private func urgent(_ section: Section, _ kind: ValueKind?) -> [Value] {
    var values: [Value] = []
    for word in section.words("urgent") ?? [] {
      guard let kind else { continue }
      do throws(ValidationError) {
        values.append(try kind.value(from: word.node.scalarJSON ?? .string(word.text)))
      } catch {
        problems.add(word.node.position, "urgent: \(error)")
      }
    }
    return values
  }

  private func isMapping(_ node: YAMLNode) -> Bool {
    if node.pairs != nil { return true }
    problems.add(node, "properties", expected: "properties by name")
    return false
  }
}

/// Properties without `command`, which only the device changes.
extension PropertyReader {
  /// The keys that say how commands are made, sent or confirmed.
  private static let keysOfCommands = [
    "policy", "confirm", "ttl", "urgent", "ends", "excludes", "implies", "always",
    "restore", "hold", "hands",
  ]

  /// Whether a property has no command; an action always needs one.
  func isReadOnly(_ section: Section, type: String) -> Bool {
    guard type != "action" else { return false }
    guard let node = section["command"] else { return !section.hasMisspelled("command") }
    return node.text == "none"
  }

  /// Reports what a property without commands lacks, and keys that mean nothing without them.
  ///
  /// Where `command: none` removes the command of a profile, the profile's other keys stay unused.
  ///
  /// - Returns: Whether it is meant to be read-only, rather than its command forgotten.
  func checkReadOnly(_ section: Section, at pair: YAMLNode.Pair) -> Bool {
    let name = Excerpt.of(pair.key)
    let hasState = section["state"].map { $0.text != "none" } ?? section.hasMisspelled("state")
    let isStated = section["command"] != nil
    if !hasState {
      problems.add(
        pair.keyPosition,
        isStated
          ? "'\(name)' has no command, so it is read-only and needs 'state': where is it reported?"
          : "'command' is missing: where do values of this property go? A read-only one has 'state'"
      )
    }
    guard hasState, !isStated else { return isStated }
    for key in Self.keysOfCommands {
      guard let node = section[key] else { continue }
      problems.add(
        node.position,
        "'\(key)' is for properties with a 'command'; '\(name)' has none, which makes it read-only"
      )
    }
    return true
  }
}

/// Reads `command:`, a property's topic and payload for commands.
struct CommandReader {
  let baseTopic: String
  let placeholders: Placeholders
  let problems: Problems

  func endpoint(_ section: Section, at position: SourcePosition, isAction: Bool) -> CommandEndpoint?
  {
    guard section["command"] != nil else {
      if !section.hasMisspelled("command") {
        problems.add(position, "'command' is missing: where do the words of this action go?")
      }
      return nil
    }
    guard let fields = section.nested("command", .command) else { return nil }
    checkRetain(fields)
    let qos = fields.integer("qos", in: 0...2)
    let payload = payload(fields, isAction: isAction)
    guard let topic = fields.topic("topic", placeholders) else { return nil }
    let filters = SettingsRules.commandFilters(baseTopic: baseTopic)
    if let own = filters.first(where: { Topic.overlaps($0, topic) }) {
      problems.add(
        fields["topic"]?.position ?? fields.position,
        "topic: '\(Excerpt.of(topic))' is the gateway's own ('\(own)'), which would loop"
      )
    }
    guard let payload else { return nil }
    return CommandEndpoint(topic: topic, payload: payload, qos: qos ?? 1)
  }

  private func checkRetain(_ fields: Section) {
    guard fields.flag("retain") == true, let node = fields["retain"] else { return }
    problems.add(
      node.position,
      "retain: commands are never retained, because the broker would replay a stale one; remove it"
    )
  }

  private func payload(_ fields: Section, isAction: Bool) -> PayloadTemplate? {
    guard let node = fields["payload"] else {
      return PayloadTemplate(.string(PayloadTemplate.placeholder))
    }
    let before = problems.count
    let structure = node.json(problems) { text, scalar in
      if PayloadTemplate.part(text) != nil { return Optional.none }
      if text != PayloadTemplate.placeholder, text.has(PayloadTemplate.placeholder) {
        problems.add(
          scalar.position,
          "payload: '$value' must be a whole string, found '\(Excerpt.of(text))'; payloads are "
            + "structures, not text; 'encode: TT=%g' puts a number into a text"
        )
      }
      return placeholders.payloadValue(text, at: scalar.position)
    } name: { pair in
      // A parameter may be a part of a member's name.
      placeholders.expandParameters(pair.key)
    }
    guard let structure, problems.count == before else { return nil }
    let template = PayloadTemplate(structure)
    guard template.carriesValue || isAction else {
      problems.add(
        node.position,
        "payload: '$value' is missing, so every value would send the same payload"
      )
      return nil
    }
    return template
  }
}

extension Section {
  /// What a device or a property is for; an unknown word has no effect, and newer ones may come.
  func deviceClass() -> String? {
    guard let word = text("class"), let node = self["class"] else { return nil }
    if word == "none" || DeviceClass.words.contains(word) { return word == "none" ? nil : word }
    problems.warn(
      node.position,
      "class: '\(Excerpt.of(word))' is no class that is known, and has no effect",
      suggestion: Suggestion.nearest(to: word, in: DeviceClass.words.sorted())
    )
    return nil
  }

  /// Which settings of a device a property belongs to.
  fileprivate func category() -> PropertyCategory? {
    guard let word = text("category"), let node = self["category"], word != "none" else {
      return nil
    }
    let words = PropertyCategory.allCases.map(\.rawValue)
    return PropertyCategory(rawValue: word)
      ?? reject(
        node,
        "category",
        expected: Section.list(words + ["none"]),
        suggestion: Suggestion.nearest(to: word, in: words)
      )
  }
}

/// Reads `hold:` and `hands:` of a property.
struct HoldReader {
  let section: Section

  /// The rule; `nil` where the property has none, or `hold: none` removes the profile's.
  func rule(of property: String) -> HoldRule? {
    let hands = hands()
    guard let node = section["hold"], node.text != "none" else {
      warnAboutUnusedHands(of: property)
      return nil
    }
    guard let duration = section.duration("hold", atLeast: .milliseconds(1)) else { return nil }
    return HoldRule(duration: duration, hands: hands ?? HoldRule.standardHands)
  }

  private func hands() -> [String]? {
    guard let words = section.words("hands") else { return nil }
    guard let node = section["hands"], words.isEmpty, node.elements?.isEmpty == true else {
      return words.map(\.text)
    }
    return section.reject(
      node,
      "hands",
      expected: "sources of changes, such as [panel, cli]; without 'hands' they are "
        + Section.list(HoldRule.standardHands)
    )
  }

  private func warnAboutUnusedHands(of property: String) {
    guard let node = section["hands"], section["hold"] == nil, !section.hasMisspelled("hold") else {
      return
    }
    section.problems.warn(
      node.position,
      "hands: has no effect, because '\(Excerpt.of(property))' has no 'hold', such as hold: 15m"
    )
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Simulation

/// The changes of one profile, and the expected messages to the device.
struct ProfileCase: Sendable {
  /// A change of one property and the command it makes.
  struct Change: Sendable {
    /// The property.
    var id: String
    /// The value or the amount, as it is published to the gateway.
    var text: String
    /// Behind the device's topic, or a whole topic after `=`.
    var topic: String
    var payload: String
    /// How it ends: `sent` where the device reports nothing.
    var phase = "confirmed"
  }

  /// An urgent value, what was pending before it, and whether the profile has it as urgent.
  struct Urgent: Sendable {
    var change: Change
    /// A property that the value ends, and a value for it.
    var pending: (id: String, text: String)?
    var isProfiles = true
  }

  /// A set of the whole device, and the one message that leaves for it.
  struct Merge: Sendable {
    var set: String
    /// The properties in it.
    var ids: [String]
    var topic: String
    var payload: String
  }

  var profile: String
  var topic: String
  /// A YAML mapping.
  var parameters = ""
  /// What the profile leaves open, for the property that is set.
  var fields = ""
  /// The device, by its topic.
  var device: @Sendable (String) -> any SimulatedDevice
  var set: Change
  var step: Change?
  var urgent: Urgent
  var toggle: Change?
  var merge: Merge?
  /// What the device gets after it was away.
  var back: Change
  /// Whether anything tells that the device is away.
  var tellsAvailability = true
  /// The target of the property that is set before anything is; `nil`: not told in this table.
  var initial: String?

  /// The identifier of the device, and of its twin that is deaf.
  var name: String { profile.map { $0 == "/" ? "-" : String($0) }.joined() }
  var deafName: String { name + "-deaf" }
  var deafTopic: String { topic + "d" }
  /// Whether anything tells that the command was carried out.
  var confirms: Bool { self.set.phase == "confirmed" }

  /// The same, of a device that never tells that it is away.
  var withoutAvailability: ProfileCase {
    var row = self
    row.tellsAvailability = false
    return row
  }

  /// A whole topic from what stands behind the device's.
  func topic(_ rest: String) -> String {
    rest.hasPrefix("=") ? String(rest.dropFirst()) : topic + rest
  }

  /// The two devices in a device file.
  ///
  /// Policies are so long that nothing leaves unless it is told to.
  var deviceText: String {
    """
    \(name):
      profile: \(profile)
      topic: \(topic)
    \(parameters.isEmpty ? "" : "  parameters: \(parameters)")
      properties:
    \(properties.map { "    \($0.id): {\($0.fields.joined(separator: ", "))}" }.joined(separator: "\n"))
    \(deafName):
      profile: \(profile)
      topic: \(deafTopic)
    \(parameters.isEmpty ? "" : "  parameters: \(parameters)")
      properties:
        \(set.id): {\(([Self.slow, confirms ? "confirm: {within: 300ms, retries: 0}" : "", fields])
      .filter { !$0.isEmpty }.joined(separator: ", "))}

    """
  }

  private static let slow = "policy: {delay: 10m, max_wait: none}"

  private var properties: [(id: String, fields: [String])] {
    var ids: [String: Bool] = [:]
    for change in [set, step, toggle, back].compactMap({ $0 }) {
      ids[change.id] = change.phase == "confirmed"
    }
    if let pending = urgent.pending { ids[pending.id] = confirms }
    for id in merge?.ids ?? [] { ids[id] = true }
    if !urgent.isProfiles { ids[urgent.change.id] = urgent.change.phase == "confirmed" }
    return ids.sorted { $0.key < $1.key }.map { id, isConfirmed in
      var fields = [Self.slow]
      // A position a little before the end would confirm, and the step count from there.
      let exact = id == "position" ? ", tolerance: 0" : ""
      if isConfirmed { fields.append("confirm: {within: 60s\(exact)}") }
      if id == set.id, !self.fields.isEmpty { fields.append(self.fields) }
      if id == urgent.change.id, !urgent.isProfiles {
        fields.append("urgent: [\(urgent.change.text)]")
      }
      return (id, fields)
    }
  }
}

extension ProfileCase {
  /// Positions: set to 20, stepped to 25, stopped with 80 pending, and 10 after an absence.
  static func cover(
    _ profile: String,
    _ topic: String,
    parameters: String = "",
    go: String,
    stop: String,
    stopped: String,
    initial: String = "0",
    payload: (String) -> String = { $0 },
    device: @escaping @Sendable (String) -> any SimulatedDevice
  ) -> ProfileCase {
    func change(_ text: String, _ value: String) -> Change {
      Change(id: "position", text: text, topic: go, payload: payload(value))
    }
    return ProfileCase(
      profile: profile,
      topic: topic,
      parameters: parameters,
      device: device,
      set: change("20", "20"),
      step: change("5", "25"),
      urgent: Urgent(
        change: Change(id: "command", text: "STOP", topic: stop, payload: stopped, phase: "sent"),
        pending: ("position", "80")
      ),
      back: change("10", "10"),
      initial: initial
    )
  }

  /// A boolean that is off at the start: set on, off at once, toggled on, and off after an absence.
  static func flag(
    _ profile: String,
    _ topic: String,
    parameters: String = "",
    id: String = "power",
    to rest: String,
    payload: (Bool) -> String,
    device: @escaping @Sendable (String) -> any SimulatedDevice
  ) -> ProfileCase {
    func change(_ isOn: Bool) -> Change {
      Change(id: id, text: isOn ? "true" : "false", topic: rest, payload: payload(isOn))
    }
    return ProfileCase(
      profile: profile,
      topic: topic,
      parameters: parameters,
      device: device,
      set: change(true),
      urgent: Urgent(change: change(false), isProfiles: false),
      toggle: change(true),
      back: change(false),
      initial: "false"
    )
  }

  /// A number: `values` are set, reached by a step, urgent, and sent after an absence.
  static func number(
    _ profile: String,
    _ topic: String,
    parameters: String = "",
    fields: String = "",
    id: String,
    initial: String?,
    values: (set: String, step: (by: String, to: String), urgent: String, back: String),
    to rest: String,
    phase: String = "confirmed",
    payload: (String) -> String = { $0 },
    device: @escaping @Sendable (String) -> any SimulatedDevice
  ) -> ProfileCase {
    func change(_ text: String, _ value: String) -> Change {
      Change(id: id, text: text, topic: rest, payload: payload(value), phase: phase)
    }
    return ProfileCase(
      profile: profile,
      topic: topic,
      parameters: parameters,
      fields: fields,
      device: device,
      set: change(values.set, values.set),
      step: change(values.step.by, values.step.to),
      urgent: Urgent(change: change(values.urgent, values.urgent), isProfiles: false),
      back: change(values.back, values.back),
      initial: initial
    )
  }

  /// A text: `values` are set, urgent, and sent after an absence.
  static func text(
    _ profile: String,
    _ topic: String,
    parameters: String = "",
    id: String = "value",
    initial: String?,
    values: [(text: String, payload: String)],
    to rest: String,
    device: @escaping @Sendable (String) -> any SimulatedDevice
  ) -> ProfileCase {
    let changes = values.map {
      Change(id: id, text: $0.text, topic: rest, payload: $0.payload)
    }
    return ProfileCase(
      profile: profile,
      topic: topic,
      parameters: parameters,
      device: device,
      set: changes[0],
      urgent: Urgent(change: changes[1], isProfiles: false),
      back: changes[2],
      initial: initial
    )
  }

  /// The same with a lamp's power: off at once, then toggled on.
  func with(
    power rest: String,
    phase: String = "confirmed",
    payload: (Bool) -> String
  ) -> ProfileCase {
    func change(_ isOn: Bool) -> Change {
      Change(
        id: "power",
        text: isOn ? "true" : "false",
        topic: rest,
        payload: payload(isOn),
        phase: phase
      )
    }
    var copy = self
    copy.urgent = Urgent(change: change(false), isProfiles: false)
    copy.toggle = change(true)
    return copy
  }

  /// The same with a device-level set that leaves as one message.
  func merging(_ set: String, _ ids: [String], to rest: String, _ payload: String) -> ProfileCase {
    var copy = self
    copy.merge = Merge(set: set, ids: ids, topic: rest, payload: payload)
    return copy
  }

  /// The same with a mode that the profile has as urgent, and that ends the set-point.
  func with(mode rest: String, payload: String) -> ProfileCase {
    var copy = self
    copy.urgent = Urgent(
      change: Change(id: "mode", text: "off", topic: rest, payload: payload),
      pending: ("target_temperature", "25")
    )
    return copy
  }
}

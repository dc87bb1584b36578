// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration
internal import Control
package import Devices
internal import JSON
package import LastOut
import Values

/// The changes of a recording, in order, with what policies need to know of them.
///
/// Values are left out: a policy decides by time alone. A change is known by its position in
/// ``entries``.
package struct Recording: Sendable {
  /// A key that the recording changes.
  package struct Key: Sendable {
    /// `device/property`, or any name.
    package let name: String
    /// The device's position in the order in which devices are first named.
    let device: Int
    /// The policy in force; without device files the built-in one of the first value's type.
    package let policy: Policy
    /// The property in the device files, if there are any.
    package let property: Property?
    /// The lane that its device names.
    let lane: String?

    /// Whether it stands for momentary commands, for which no policy makes sense.
    package var isAction: Bool {
      if case .action = property?.kind { true } else { false }
    }
  }

  enum Operation: Hashable, Sendable {
    case change(skipsQuiet: Bool, isUrgent: Bool)
    case cancel
    case flush
  }

  struct Entry: Sendable {
    let at: Moment
    /// The position in ``Recording/keys``.
    let key: Int
    let operation: Operation
  }

  /// In the order of their first change.
  package private(set) var keys: [Key] = []
  private(set) var entries: [Entry] = []
  private var indices: [String: Int] = [:]
  private var devices: [String: Int] = [:]
  private let registry: Registry?

  init(registry: Registry?) { self.registry = registry }

  /// How many changes a key has.
  package func changeCount(of key: Int) -> Int {
    entries.count { $0.key == key && $0.isChange }
  }

  /// Adds a line that has been found valid.
  mutating func record(_ request: ControlRequest, of names: [String], at now: Moment) {
    switch request.operation {
    case .set(let input):
      let members = request.deviceMembers
      for name in names {
        let value = members?.first { name.hasSuffix("/\($0.name)") }?.value ?? input
        add(name, value, skipsQuiet: request.now, at: now)
      }
    case .step:
      for name in names { add(name, 0, skipsQuiet: request.now, at: now) }
    case .toggle:
      for name in names { add(name, true, skipsQuiet: request.now, at: now) }
    case .cancel: add(.cancel, matching: request.key, at: now)
    case .flush: add(.flush, matching: request.key, at: now)
    case .scene, .get, .pending, .watch, .describe, .record, .reload, .status, .log, .devices:
      break
    }
  }

  private mutating func add(
    _ name: String,
    _ input: JSONValue,
    skipsQuiet: Bool,
    at now: Moment
  ) {
    let key = index(of: name, input)
    var isUrgent = false
    if let property = keys[key].property, let value = try? property.value(from: input) {
      isUrgent = property.urgent.contains(value)
    }
    let operation = Operation.change(skipsQuiet: skipsQuiet, isUrgent: isUrgent)
    entries.append(Entry(at: now, key: key, operation: operation))
  }

  private mutating func add(_ operation: Operation, matching text: String, at now: Moment) {
    let pattern = Pattern(text)
    for (key, entry) in keys.enumerated() where pattern.matches(entry.name) {
      entries.append(Entry(at: now, key: key, operation: operation))
    }
  }

  /// The position of the key called `name`, which may be an alias.
  private mutating func index(of name: String, _ input: JSONValue) -> Int {
    if let index = indices[name] { return index }
    let found = registry.flatMap { registry in
      (try? registry.index(of: name)).map { (registry[$0], registry) }
    }
    let fullName = found?.0.key ?? name
    if let index = indices[fullName] {
      indices[name] = index
      return index
    }
    let device = String(fullName.prefix { $0 != "/" })
    let number = devices[device] ?? devices.count
    devices[device] = number
    keys.append(
      Key(
        name: fullName,
        device: number,
        policy: found?.0.property.policy ?? PolicyTable.builtIn(forType: Self.type(of: input)),
        property: found?.0.property,
        lane: found.flatMap { $0.1.devices[$0.0.device].lane }
      )
    )
    indices[name] = keys.count - 1
    indices[fullName] = keys.count - 1
    return keys.count - 1
  }

  /// The type of property that a value without device files most likely has.
  private static func type(of value: JSONValue) -> String {
    switch value {
    case .integer, .number: "number"
    case .boolean: "boolean"
    case .null, .string, .array, .object: "text"
    }
  }
}

extension Recording.Entry {
  var isChange: Bool {
    switch operation {
    case .change: true
    case .cancel, .flush: false
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import Values

/// What a person knows of a property: its relations to others of the device.
package struct HouseholdFacts: Sendable {
  package var device: Int
  package var isAction = false
  /// Values that end the commands of ``ended``.
  package var urgent: [Value] = []
  package var ended: [Int] = []
  package var excludes: [Int] = []
  /// The boolean property that it implies; see ``implied(by:)``.
  package var implies: Int?
  /// What a press of each word makes of another property.
  package var moves: [String: Move] = [:]
  /// The range of a number.
  package var range: ClosedRange<Double>?
  /// The difference that counts as none.
  package var tolerance = 0.0

  package struct Move: Sendable {
    package var key: Int
    package var want: Expectation.Want

    package init(key: Int, want: Expectation.Want) {
      self.key = key
      self.want = want
    }
  }

  package init(device: Int) { self.device = device }

  /// The value of ``implies`` that a value implies: `true`, and `false` for the number 0.
  package static func implied(by value: Value) -> Bool {
    if case .number(0) = value { false } else { true }
  }

  func ends(_ value: Value, _ key: Int) -> Bool { ended.contains(key) && urgent.contains(value) }

  /// Whether `value` implies of `key` something else than `other`.
  func contradicts(_ value: Value, _ key: Int, _ other: Value) -> Bool {
    implies == key && other != .boolean(Self.implied(by: value))
  }

  func isSame(_ left: Value, _ right: Value) -> Bool {
    if case .number(let left) = left, case .number(let right) = right {
      return (left - right).magnitude <= tolerance
    }
    return left == right
  }
}

extension HouseholdFacts {
  /// The facts of all keys, from the definitions alone; `implies` maps a key's name to another one.
  package static func all(in registry: Registry, implies: [String: String]) -> [HouseholdFacts] {
    let names = registry.properties.map(\.key)
    return registry.properties.enumerated().map { place, entry in
      let property = entry.property
      func others(_ ids: [String]) -> [Int] {
        registry.properties.indices.filter {
          registry.properties[$0].device == entry.device
            && ids.contains(registry.properties[$0].property.id)
        }
      }
      var facts = HouseholdFacts(device: entry.device)
      facts.isAction = property.isAction
      facts.urgent = property.urgent
      facts.ended = others(property.ends)
      facts.excludes = others(property.excludes)
      facts.implies = implies[names[place]].flatMap { names.firstIndex(of: $0) }
      facts.range = property.kind.numberRule?.range
      facts.tolerance = property.confirm?.tolerance ?? 0.5
      if facts.isAction, let moved = others(["position"]).first {
        facts.moves = [
          "STOP": Move(key: moved, want: .stopped),
          "OPEN": Move(key: moved, want: .value(.number(100))),
          "CLOSE": Move(key: moved, want: .value(.number(0))),
        ]
      }
      return facts
    }
  }
}

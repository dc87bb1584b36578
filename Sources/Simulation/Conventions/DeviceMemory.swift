// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
package import LastOut
import Values

/// The values of a simulated device's parts, some of which may be moving.
package struct DeviceMemory: Sendable {
  private enum StoredValue: Sendable {
    case resting(JSONValue)
    case moving(Ramp)
  }

  private var parts: [String: [String: StoredValue]] = [:]

  /// Creates parts with constant values.
  package init(_ parts: [String: [String: JSONValue]]) {
    self.parts = parts.mapValues { $0.mapValues { .resting($0) } }
  }

  /// The names of the parts, in alphabetical order.
  package var partNames: [String] { parts.keys.sorted() }

  package func has(_ part: String, _ name: String? = nil) -> Bool {
    guard let values = parts[part] else { return false }
    return name.map { values[$0] != nil } ?? true
  }

  /// A value of a part, rounded to a whole number while it moves; null if there is none.
  package func value(_ part: String, _ name: String, at now: Moment) -> JSONValue {
    switch parts[part]?[name] {
    case nil: .null
    case .resting(let value): value
    case .moving(let ramp):
      ramp.isMoving(at: now)
        ? .integer(Int64(ramp.value(at: now).rounded())) : JSONValue(shortest: ramp.to)
    }
  }

  /// A number of a part; 0 if there is none.
  package func number(_ part: String, _ name: String, at now: Moment) -> Double {
    if case .moving(let ramp) = parts[part]?[name] { return ramp.value(at: now) }
    return value(part, name, at: now).double ?? 0
  }

  /// A value of a part as bare text.
  package func text(_ part: String, _ name: String, at now: Moment) -> String {
    let value = value(part, name, at: now)
    return value.string ?? JSONWriter.text(value)
  }

  package func isMoving(_ part: String, at now: Moment) -> Bool {
    parts[part, default: [:]].values.contains {
      if case .moving(let ramp) = $0 { ramp.isMoving(at: now) } else { false }
    }
  }

  /// The end of the first movement of a part to end; `nil` if nothing moves.
  package func nextEnd(_ part: String, at now: Moment) -> Moment? {
    parts[part, default: [:]].values.compactMap {
      if case .moving(let ramp) = $0, ramp.isMoving(at: now) { ramp.end } else { nil }
    }.min()
  }

  /// Applies a change; a change of an unknown part has no effect.
  package mutating func apply(_ change: DeviceChange, at now: Moment) {
    guard has(change.part) else { return }
    let current = number(change.part, change.name, at: now)
    let stored: StoredValue =
      switch change.kind {
      case .set(let value): .resting(value)
      case .stop: .resting(.integer(Int64(current.rounded())))
      case .move(let target, let duration):
        duration > .zero
          ? .moving(Ramp(from: current, to: target, start: now, duration: duration))
          : .resting(JSONValue(shortest: target))
      case .travel(let target, let span, let whole):
        .moving(
          Ramp(
            from: current,
            to: target,
            start: now,
            duration: whole * (abs(target - current) / span)
          )
        )
      }
    parts[change.part]?[change.name] = stored
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import Values

/// One line of `get`: a key's last target and the last value that the device reported.
package struct TargetRow: Hashable, Sendable {
  package var key: String
  package var target: JSONValue?
  package var actual: JSONValue?
  /// The phase of the key's last command; `nil` before the first.
  package var phase: Phase?
  /// How long ago the target, the actual value or the phase last changed; `nil` if never.
  package var ageMilliseconds: Int?
  /// How many commands of an action wait, if several do; otherwise `nil`.
  package var waiting: Int?
  /// Whether the property was ever reported, or has no state topic.
  package var isHeard = true

  package init(
    key: String,
    target: JSONValue?,
    actual: JSONValue?,
    phase: Phase?,
    ageMilliseconds: Int?,
    waiting: Int? = nil
  ) {
    self.key = key
    self.target = target
    self.actual = actual
    self.phase = phase
    self.ageMilliseconds = ageMilliseconds
    self.waiting = waiting
  }

  /// Reads a row; `nil` without a key.
  package init?(_ json: JSONValue) {
    guard let key = json["key"]?.string else { return nil }
    self.init(
      key: key,
      target: json["target"]?.unlessNull,
      actual: json["actual"]?.unlessNull,
      phase: json["phase"]?.string.flatMap(Phase.init),
      ageMilliseconds: json["age_ms"]?.count,
      waiting: json["waiting"]?.count
    )
    isHeard = json["heard"] != false
  }

  package var json: JSONValue {
    var members: [JSONValue.Member] = [
      .init("key", .string(key)), .init("target", target ?? .null),
      .init("actual", actual ?? .null),
      .init("phase", phase.map { .string($0.rawValue) } ?? .null),
      .init("age_ms", ageMilliseconds.map { .integer(Int64($0)) } ?? .null),
    ]
    if !isHeard { members.append(.init("heard", false)) }
    if let waiting { members.append(.init("waiting", .integer(Int64(waiting)))) }
    return .object(members)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import LastOut
import Values

/// What makes a device a group: the devices that it stands for.
package struct DeviceGroup: Hashable, Sendable {
  /// The ids of its members, in order; none is a group.
  package var members: [String]

  package init(members: [String]) { self.members = members }

  /// The properties that all members have and that can be changed, each with what all of them
  /// allow.
  ///
  /// The order is that of the first member. Each change of a group's property is a change of each
  /// member's; where it has a command topic, one message there may carry the commands of all.
  package static func sharedProperties(of members: [Device]) -> [Property] {
    guard let first = members.first else { return [] }
    return first.properties.filter { !$0.isReadOnly }.compactMap { property in
      members.dropFirst().reduce(Optional(asGroup(property))) { shared, member in
        guard let shared, let other = member.properties.first(where: { $0.id == shared.id }) else {
          return nil
        }
        return shared.shared(with: other)
      }
    }
  }

  /// A member's property as the group's, without a command topic.
  private static func asGroup(_ property: Property) -> Property {
    var shared = Property(
      id: property.id,
      kind: property.kind,
      policy: property.policy,
      command: .none,
      ttl: property.ttl
    )
    shared.name = property.name
    shared.aliases = property.aliases
    shared.confirm = property.states.isEmpty ? nil : property.confirm
    shared.urgent = property.urgent
    return shared
  }
}

extension Property {
  /// The property with what `other` allows too; `nil` where no value is allowed by both.
  fileprivate func shared(with other: Property) -> Property? {
    guard !other.isReadOnly, let kind = kind.shared(with: other.kind) else { return nil }
    var shared = self
    shared.kind = kind
    shared.aliases = aliases.filter { other.aliases.contains($0) }
    shared.urgent = urgent.filter { other.urgent.contains($0) }
    if other.policy.delay > policy.delay { shared.policy = other.policy }
    shared.ttl = max(ttl, other.ttl)
    if name != other.name { shared.name = nil }
    if let confirm, let theirs = other.confirm, !other.states.isEmpty {
      shared.confirm?.within = max(confirm.within, theirs.within)
    } else {
      shared.confirm = nil
    }
    return shared
  }
}

extension ValueKind {
  /// The values that both types have; `nil` where there are none.
  fileprivate func shared(with other: ValueKind) -> ValueKind? {
    switch (self, other) {
    case (.number(let mine), .number(let theirs)):
      return mine.shared(with: theirs).map { .number($0) }
    case (.integer(let mine), .integer(let theirs)), (.integer(let mine), .number(let theirs)),
      (.number(let mine), .integer(let theirs)):
      return mine.shared(with: theirs).map { .integer($0) }
    case (.choice(let mine), .choice(let theirs)):
      let words = mine.filter { theirs.contains($0) }
      return words.isEmpty ? nil : .choice(words)
    case (.action(let mine), .action(let theirs)):
      if mine.isEmpty { return .action(theirs) }
      if theirs.isEmpty { return self }
      let words = mine.filter { theirs.contains($0) }
      return words.isEmpty ? nil : .action(words)
    case (.boolean, .boolean), (.text, .text), (.color, .color): return self
    case (.number, _), (.integer, _), (.boolean, _), (.choice, _), (.text, _), (.color, _),
      (.action, _):
      return nil
    }
  }
}

extension NumberRule {
  /// The numbers that both rules allow; each member snaps them to its own grid.
  fileprivate func shared(with other: NumberRule) -> NumberRule? {
    var rule = self
    if let range, let theirs = other.range {
      guard range.overlaps(theirs) else { return nil }
      rule.range = range.clamped(to: theirs)
    } else {
      rule.range = range ?? other.range
    }
    if step != other.step { rule.step = nil }
    if unit != other.unit { rule.unit = nil }
    if display != other.display { rule.display = nil }
    return rule
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut
package import Values

/// The default policy of each property type: the settings' fields over built-in ones.
package struct PolicyTable: Hashable, Sendable {
  /// The fields in the settings, by type name.
  package var stated: [String: PolicyFields] = [:]

  package init() {}

  /// The policy of a type, which profile and property can override.
  package func policy(forType name: String) -> Policy {
    stated[name]?.applied(to: Self.builtIn(forType: name)) ?? Self.builtIn(forType: name)
  }

  /// The policy of a kind, which profile and property can override.
  package func policy(for kind: ValueKind) -> Policy { policy(forType: kind.name) }

  /// The policy of a type without settings.
  package static func builtIn(forType name: String) -> Policy {
    switch name {
    case "number", "integer", "color":
      Policy(delay: .milliseconds(300), maxWait: .seconds(2))
    case "action": Policy(delay: .zero)
    default: Policy(delay: .milliseconds(20))
    }
  }
}

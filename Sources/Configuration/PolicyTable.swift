// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// How keys settle by the type of their values: built in, and what the settings say.
package struct PolicyTable: Hashable, Sendable {
  /// What the settings state, by the word for the type.
  package var stated: [String: PolicyFields] = [:]

  package init() {}

  /// The policy of a type before profile and property have their say.
  package func policy(forType name: String) -> Policy {
    stated[name]?.applied(to: Self.builtIn(forType: name)) ?? Self.builtIn(forType: name)
  }

  /// The policy of a kind before profile and property have their say.
  package func policy(for kind: ValueKind) -> Policy { policy(forType: kind.name) }

  /// The policy of a type where nothing is stated.
  package static func builtIn(forType name: String) -> Policy {
    switch name {
    case "number", "integer", "color":
      Policy(delay: .milliseconds(300), maxWait: .seconds(2))
    case "action": Policy(delay: .zero)
    default: Policy(delay: .milliseconds(20))
    }
  }
}

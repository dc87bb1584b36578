// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// One controllable value of a device, with everything inherited already filled in.
package struct Property: Hashable, Sendable {
  package var id: String
  package var aliases: [String] = []
  /// What people read instead of the identifier, if they gave one.
  package var name: String?
  package var kind: ValueKind
  package var policy: Policy
  package var command: CommandRoad
  /// Where the device reports the property: usually one place; any of them counts.
  package var states: [StateSource] = []
  /// `nil`: `sent` is the end.
  package var confirm: Confirmation?
  package var ttl: Duration
  /// Values that leave at once.
  package var urgent: [Value] = []
  /// Properties of the same device whose commands an urgent value ends.
  package var ends: [String] = []
  /// Properties of the same device that this one replaces, the newer winning.
  package var excludes: [String] = []
  /// Send even if the device already has the value.
  package var always = false
  /// How values become wire values and back.
  package var wire = WireRule()

  package init(
    id: String,
    kind: ValueKind,
    policy: Policy,
    command: CommandRoad,
    ttl: Duration = .seconds(60)
  ) {
    self.id = id
    self.kind = kind
    self.policy = policy
    self.command = command
    self.ttl = ttl
  }

  /// The first of ``states``; setting it replaces them all.
  package var state: StateSource? {
    get { states.first }
    set { states = newValue.map { [$0] } ?? [] }
  }
}

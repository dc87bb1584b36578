// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// What a change carries beside its value.
///
/// A plain change passes them in registers: one more word, and each change copies them in memory.
package struct ChangeOptions: Sendable {
  package var origin: ChangeOrigin?
  /// How long the value may wait for an offline broker or device; `nil`: as the property says.
  package var ttl: Duration?
  /// Members that are sent with the command, see ``Device/options``.
  package var members: [JSONValue.Member]?
  /// Whether the quiet period is skipped.
  package var skipsQuiet = false
  /// Whether values that are accepted together wait for the longest of their quiet periods.
  package var isJoint = false
  /// Whether the value contradicts another one of the same change, see
  /// ``CommandStateMachine/stating(_:)``.
  package var rides = false

  package init(
    origin: ChangeOrigin? = nil,
    ttl: Duration? = nil,
    members: [JSONValue.Member]? = nil,
    skipsQuiet: Bool = false,
    isJoint: Bool = false
  ) {
    self.origin = origin
    self.ttl = ttl
    self.members = members
    self.skipsQuiet = skipsQuiet
    self.isJoint = isJoint
  }

  /// The same, with the quiet period.
  package var settling: ChangeOptions {
    var options = self
    options.skipsQuiet = false
    return options
  }
}

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
  package var quiet = QuietPeriod.normal
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
    quiet = skipsQuiet ? .skipped : isJoint ? .joint : .normal
  }

  /// Whether the quiet period is skipped.
  package var skipsQuiet: Bool { quiet == .skipped }

  /// The same, with the quiet period.
  package var settling: ChangeOptions {
    var options = self
    options.quiet = .normal
    return options
  }

  /// The same, for a change whose quiet period grows because it is part of a feedback loop.
  package var slowed: ChangeOptions {
    var options = self
    options.quiet = .slowed
    return options
  }
}

/// How a value waits for quiet.
package enum QuietPeriod: Sendable {
  case normal
  case skipped
  /// Values that are accepted together wait for the longest of their quiet periods.
  case joint
  /// Like ``normal``, and the value does not lead its burst.
  case slowed
}

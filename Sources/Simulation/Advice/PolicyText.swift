// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut
internal import Values

/// A policy as text.
package enum PolicyText {
  /// The value of `policy:` in a device file, as `{delay: 300ms, max_wait: 2s}` or `live`.
  ///
  /// Fields that are left out are inherited, so it states each field that differs from the built-in
  /// one, or from `inherited`.
  package static func yaml(_ policy: Policy, over inherited: Policy? = nil) -> String {
    guard policy != .live else { return "live" }
    var fields = ["delay: \(text(policy.delay))", "max_wait: \(limit(policy))"]
    if policy.leading || inherited?.leading == true { fields.append("leading: \(policy.leading)") }
    if policy.minInterval != .zero || (inherited?.minInterval ?? .zero) != .zero {
      fields.append("min_interval: \(text(policy.minInterval))")
    }
    return "{\(fields.joined(separator: ", "))}"
  }

  /// A short name for a picture: `300ms`, `300ms, 2s, leading`, `live at 500ms`.
  static func label(_ policy: Policy) -> String {
    guard policy != .live else { return "live" }
    if policy.leading, policy.minInterval == policy.delay, policy.maxWait == policy.delay {
      return "live at \(text(policy.delay))"
    }
    var parts = [text(policy.delay)]
    if let limit = policy.maxWait { parts.append("max \(text(limit))") }
    if policy.leading { parts.append("leading") }
    if policy.minInterval != .zero { parts.append("every \(text(policy.minInterval))") }
    return parts.joined(separator: ", ")
  }

  private static func limit(_ policy: Policy) -> String { policy.maxWait.map(text) ?? "none" }

  private static func text(_ duration: Duration) -> String { DurationText.text(duration) }
}

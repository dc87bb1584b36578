// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut
package import Values

/// A step or toggle that waited for its device's state, as the value that it resulted in.
///
/// A recorder of accepted changes needs these apart: when such a step arrived, its value was not
/// known yet.
package struct AppliedStep: Sendable {
  package let key: KeyIndex
  /// The value that was accepted in its place.
  package let value: Value
  /// When the state arrived.
  package let at: Moment
  package let origin: ChangeOrigin?
  /// Whether the quiet period of the value was skipped.
  package let skipsQuiet: Bool

  init(_ step: WaitingSteps.Step, _ value: Value, of key: KeyIndex, at now: Moment) {
    self.key = key
    self.value = value
    at = now
    origin = step.options.origin
    skipsQuiet = step.options.skipsQuiet
  }
}

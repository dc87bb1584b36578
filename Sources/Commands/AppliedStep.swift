// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// A step or toggle that had waited for its device's state, as the value that it then led to.
package struct AppliedStep: Sendable {
  package let key: KeyIndex
  package let value: Value
  /// When the state had come.
  package let at: Moment
  package let origin: ChangeOrigin?
  package let skipsQuiet: Bool
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// What the memory has to say.
package enum MemoryNews: Sendable {
  /// An event may be told; `isDurable`: what it says survives a crash.
  case told(number: UInt64, phase: Phase, isDurable: Bool)
  /// What waits of the key is refused: a crash would send something older after it.
  case refused(KeyIndex)
  /// A value of an earlier process is to be sent once more.
  case replay(Survivor)
  /// A value of an earlier process is too old.
  case expired(Survivor)
}

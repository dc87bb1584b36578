// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

extension Duration {
  /// The duration in milliseconds, the unit of ``MeshParameters`` and of all results.
  var inMilliseconds: Double { Double(wholeNanoseconds) / 1e6 }
}

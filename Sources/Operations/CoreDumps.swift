// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV

/// The kernel's copies of this process's memory, which holds passwords and tokens.
package enum CoreDumps {
  /// Whether a crash of this process may leave its memory in a file.
  package static var areEnabled: Bool { settle_is_dumpable() == 1 }

  /// Disables core dumps of this process, by files and by programs of the service manager.
  ///
  /// A debugger of the same user cannot attach either; root can. Child processes that execute a
  /// program are not affected.
  package static func disable() {
    _ = settle_disable_core_dumps()
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc
import Synchronization

/// Wakes an event loop from another thread.
///
/// The descriptor lives as long as the waker, so a late wake-up after the loop has ended is
/// harmless.
package final class Waker: Sendable {
  let descriptor: Int32
  /// A wake-up was sent that the loop has not seen yet.
  private let isPending = Atomic<Bool>(false)

  /// A waker to be watched by a loop.
  package init() throws(OperationsError) {
    descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    guard descriptor >= 0 else { throw OperationsError(call: "eventfd", code: errno) }
  }

  deinit {
    close(descriptor)
  }

  /// Wakes the loop; from any thread.
  ///
  /// What was written before is visible to the loop's handler.
  package func wake() {
    guard !isPending.exchange(true, ordering: .acquiringAndReleasing) else { return }
    eventfd_write(descriptor, 1)
  }

  func acknowledge() {
    var count: eventfd_t = 0
    unsafe eventfd_read(descriptor, &count)
    _ = isPending.exchange(false, ordering: .acquiringAndReleasing)
  }
}

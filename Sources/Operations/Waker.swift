// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc
import Synchronization

/// Wakes an event loop from another thread.
///
/// The descriptor stays open until the waker is released, so a wake-up after the end of the loop is
/// harmless.
package final class Waker: Sendable {
  let descriptor: Int32
  /// Whether a wake-up is sent that the loop has not handled.
  private let isPending = Atomic<Bool>(false)

  /// Creates a waker for a loop to watch.
  package init() throws(OperationsError) {
    descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    guard descriptor >= 0 else { throw OperationsError(call: "eventfd", code: errno) }
  }

  deinit {
    close(descriptor)
  }

  /// Wakes the loop; from any thread.
  ///
  /// Memory writes before it are visible to the loop's handler.
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

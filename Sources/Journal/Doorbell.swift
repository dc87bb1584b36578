// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Makes one thread sleep until another has work for it; rings are counted.
@safe final class Doorbell: @unchecked Sendable {
  // A POSIX semaphore is thread safe; its memory never moves.
  private let semaphore: UnsafeMutablePointer<sem_t>

  init() {
    unsafe semaphore = .allocate(capacity: 1)
    unsafe sem_init(semaphore, 0, 0)
  }

  deinit {
    unsafe sem_destroy(semaphore)
    unsafe semaphore.deallocate()
  }

  func ring() {
    unsafe sem_post(semaphore)
  }

  /// Sleeps until the bell rings, or returns at once for an earlier ring.
  func wait() {
    while unsafe sem_wait(semaphore) != 0, errno == EINTR {}
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Durability
internal import Glibc

/// Holds a journal for this process until it is released or the process ends.
struct FileLock: ~Copyable, Sendable {
  private let descriptor: Int32

  /// - Throws: ``JournalRefusal/inUse(path:)`` while another process holds it.
  init(of path: String) throws(JournalProblem) {
    let name = path + "-lock"
    descriptor = unsafe open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      if errno == ELOOP { throw .refused(.symbolicLink(path: name)) }
      throw .fault(Files.failure("open \(name)"))
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      close(descriptor)
      if code == EWOULDBLOCK { throw .refused(.inUse(path: path)) }
      throw .fault(Files.failure("flock \(name)", code))
    }
  }

  deinit {
    // Closing alone would leave it to a child that has not come to its exec yet.
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }
}

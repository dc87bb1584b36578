// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Durability
internal import Glibc

/// Locks a journal for this process, until it is released or the process ends.
///
/// The lock's file, `PATH-lock`, also remembers that a journal was created beside it: without that a
/// journal whose files were deleted would look like one that never existed.
struct FileLock: ~Copyable, Sendable {
  private static let mark = Array("A journal was created here.\n".utf8)

  private let name: String
  private let descriptor: Int32

  /// - Throws: ``JournalRefusal/inUse(path:)`` while another process holds it.
  init(of path: String) throws(JournalProblem) {
    name = path + "-lock"
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
    // Closing alone would leave the lock to a child process that has not reached its exec.
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  /// Whether the file was deleted or replaced, so that another process could lock the journal too.
  func isLost() throws(JournalFault) -> Bool {
    guard let found = try Files.status(name) else { return true }
    return try !found.isSameFile(as: Files.status(of: descriptor, name))
  }

  /// Whether a journal was created here.
  func isMarked() throws(JournalFault) -> Bool {
    try Files.status(of: descriptor, name).size > 0
  }

  /// Remembers that a journal was created here; call it once its files are durable.
  func markCreated() throws(JournalFault) {
    guard try !isMarked() else { return }
    try Files.write(Self.mark, to: descriptor, name)
    guard fsync(descriptor) == 0 else { throw Files.failure("fsync \(name)") }
  }
}

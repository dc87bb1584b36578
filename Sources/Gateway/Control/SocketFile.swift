// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations

/// Makes the file of a listening unix socket.
enum SocketFile {
  /// How many clients may wait to be accepted.
  private static let backlog: Int32 = 512

  /// Makes the folder that `path` is in, and the one above it, if missing.
  static func makeFolder(of path: String) throws(OperationsError) {
    guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return }
    let folder = String(path[..<slash])
    if unsafe mkdir(folder, 0o750) == 0 || errno == EEXIST { return }
    if errno == ENOENT {
      try makeFolder(of: folder)
      if unsafe mkdir(folder, 0o750) == 0 || errno == EEXIST { return }
    }
    throw OperationsError(call: "mkdir \(folder)", code: errno)
  }

  /// Acquires the lock that keeps a second gateway away from the same socket.
  ///
  /// It is released when the process ends.
  static func lock(_ path: String) throws(OperationsError) -> Int32 {
    let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw OperationsError(call: "open \(path)", code: errno) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      close(descriptor)
      guard code == EWOULDBLOCK else { throw OperationsError(call: "flock \(path)", code: code) }
      throw OperationsError(
        call: "lock \(path)",
        code: code,
        reason: "another gateway is running at this socket; stop it or choose another socket"
      )
    }
    return descriptor
  }

  /// Binds and listens; a socket that was left behind is removed, anything else is not.
  static func listen(at path: String) throws(OperationsError) -> Int32 {
    var address = sockaddr_un()
    let room = MemoryLayout.size(ofValue: address.sun_path)
    let bytes = Array(path.utf8)
    guard bytes.count < room, !bytes.contains(0) else {
      throw OperationsError(
        call: "bind \(path)",
        code: ENAMETOOLONG,
        reason: "the path has \(bytes.count) bytes, \(room - 1) allowed"
      )
    }
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
    try removeLeftover(path)
    let descriptor = socket(
      AF_UNIX,
      Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue),
      0
    )
    guard descriptor >= 0 else { throw OperationsError(call: "socket", code: errno) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let bound = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(descriptor, $0, size)
      }
    }
    guard bound == 0, unsafe chmod(path, 0o660) == 0, Glibc.listen(descriptor, backlog) == 0 else {
      let error = OperationsError(call: "bind \(path)", code: errno)
      close(descriptor)
      throw error
    }
    return descriptor
  }

  private static func removeLeftover(_ path: String) throws(OperationsError) {
    var status = stat()
    guard unsafe lstat(path, &status) == 0 else { return }
    guard status.st_mode & S_IFMT == S_IFSOCK else {
      throw OperationsError(
        call: "bind \(path)",
        code: EEXIST,
        reason: "the path is an existing file that is not a socket"
      )
    }
    unsafe unlink(path)
  }
}

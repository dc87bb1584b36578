// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Operations

/// Reads files safely: only regular files, with a size limit, without blocking on a pipe.
enum SafeFile {
  /// Why a file cannot be read.
  ///
  /// The message is a predicate without its subject.
  struct Problem: Error {
    let message: String
    var isMissing = false
  }

  /// Reads a regular file of at most `limit` bytes, and who may use it.
  ///
  /// Settings may be symbolic links, because some systems install them that way. Secrets may not.
  static func read(
    _ path: String,
    limit: Int,
    followsLinks: Bool = true
  ) throws(Problem) -> (bytes: [UInt8], trust: FileTrust) {
    guard !path.utf8.contains(0) else { throw Problem(message: "the path contains a NUL byte") }
    let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (followsLinks ? 0 : O_NOFOLLOW)
    let descriptor = unsafe open(path, flags)
    guard descriptor >= 0 else {
      let code = errno
      if code == ELOOP, !followsLinks {
        throw Problem(message: "is a symbolic link; give the file itself")
      }
      if code == ENOENT, isLink(path) {
        throw Problem(message: "is a symbolic link to a file that does not exist", isMissing: true)
      }
      throw Problem(message: describe(code), isMissing: code == ENOENT)
    }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw Problem(message: describe(errno)) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw Problem(message: "is not a regular file")
    }
    guard status.st_size <= limit else {
      throw Problem(message: "has \(status.st_size) bytes; at most \(limit) are read")
    }
    let trust = FileTrust(owner: status.st_uid, mode: status.st_mode)
    return (try readAll(descriptor, limit: limit), trust)
  }

  /// The names in a folder that end with `suffix`, sorted by bytes.
  ///
  /// Hidden files are left out.
  static func names(in folder: String, suffix: String) throws(Problem) -> [String] {
    guard let directory = unsafe opendir(folder) else {
      throw Problem(message: describe(errno), isMissing: errno == ENOENT)
    }
    defer { unsafe closedir(directory) }
    var names: [String] = []
    while let entry = unsafe readdir(directory) {
      let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name.hasSuffix(suffix), name.first != "." { names.append(name) }
    }
    return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  /// Whether the names in a folder can be read.
  static func isFolder(_ path: String) -> Bool {
    guard let directory = unsafe opendir(path) else { return false }
    unsafe closedir(directory)
    return true
  }

  private static func isLink(_ path: String) -> Bool {
    var status = stat()
    return unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
  }

  private static func readAll(_ descriptor: Int32, limit: Int) throws(Problem) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw Problem(message: describe(errno)) }
      if count == 0 { return bytes }
      bytes.append(contentsOf: chunk[..<count])
      guard bytes.count <= limit else {
        throw Problem(message: "grew beyond \(limit) bytes while it was read")
      }
    }
  }

  private static func describe(_ code: Int32) -> String {
    switch code {
    case ENOENT: "does not exist"
    case EACCES: "cannot be read (permission denied)"
    case ENOTDIR: "is not a folder, or not in one"
    case EISDIR: "is a folder"
    default: unsafe "cannot be read: \(String(cString: strerror(code)))"
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Files that are replaced as a whole.
package enum AtomicFile {
  /// The bytes of a regular file; `nil` if it does not exist.
  ///
  /// - Throws: ``FileError`` when the file cannot be read or is a symbolic link, because a write
  ///   must not leave its folder.
  package static func read(_ path: String, limit: Int = 8 << 20) throws(FileError) -> [UInt8]? {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else {
      if errno == ENOENT { return Optional.none }
      throw FileError(path, errno == ELOOP ? "is a symbolic link" : Self.words(errno))
    }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw FileError(path, words(errno)) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw FileError(path, "is not a regular file") }
    guard status.st_size <= limit else {
      throw FileError(path, "has \(status.st_size) bytes; at most \(limit) are read")
    }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = unsafe Glibc.read(descriptor, &part, part.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw FileError(path, words(errno)) }
      if count == 0 { return bytes }
      bytes += part[..<count]
      guard bytes.count <= limit else { throw FileError(path, "grew while it was read") }
    }
  }

  /// Writes a temporary file beside `path`, synchronizes it to disk, and renames it to `path`.
  ///
  /// - Throws: ``FileError`` when a step fails; the existing file is then unchanged.
  package static func write(_ bytes: [UInt8], to path: String) throws(FileError) {
    let slash = path.lastIndex(of: "/")
    let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let name = slash.map { String(path[path.index(after: $0)...]) } ?? path
    let draft = "\(folder)/.\(name).\(getpid()).new"
    unlink(draft)
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    let descriptor = unsafe open(draft, flags, mode(of: path))
    guard descriptor >= 0 else { throw FileError(path, "cannot be written: \(words(errno))") }
    do throws(FileError) {
      defer { close(descriptor) }
      try writeAll(bytes, to: descriptor, path)
      guard fsync(descriptor) == 0 else {
        throw FileError(path, "cannot be written: \(words(errno))")
      }
    } catch {
      unlink(draft)
      throw error
    }
    guard unsafe rename(draft, path) == 0 else {
      let code = errno
      unlink(draft)
      throw FileError(path, "cannot be written: \(words(code))")
    }
    let directory = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if directory >= 0 {
      fsync(directory)
      close(directory)
    }
  }

  /// Creates a folder if it does not exist; its parent must exist.
  ///
  /// - Throws: ``FileError`` when the folder cannot be created.
  package static func makeFolder(_ path: String) throws(FileError) {
    guard unsafe mkdir(path, 0o755) != 0, errno != EEXIST else { return }
    throw FileError(path, "the folder cannot be created: \(words(errno))")
  }

  private static func mode(of path: String) -> mode_t {
    var status = stat()
    return unsafe lstat(path, &status) == 0 ? status.st_mode & 0o777 : 0o644
  }

  private static func writeAll(
    _ bytes: [UInt8],
    to descriptor: Int32,
    _ path: String
  ) throws(FileError) {
    var written = 0
    while written < bytes.count {
      let count = unsafe bytes[written...].withUnsafeBytes { buffer in
        unsafe Glibc.write(descriptor, buffer.baseAddress, buffer.count)
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw FileError(path, "cannot be written: \(words(errno))") }
      written += count
    }
  }

  private static func unlink(_ path: String) { _ = unsafe Glibc.unlink(path) }

  private static func words(_ code: Int32) -> String {
    unsafe String(cString: strerror(code)).lowercased()
  }
}

/// Why a file cannot be read or written.
package struct FileError: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String

  package init(_ path: String, _ reason: String) { description = "\(path): \(reason)" }
}

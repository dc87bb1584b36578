// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration
package import Glibc
internal import Operations

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
      guard errno == ELOOP else { throw FileError(path, Self.words(errno)) }
      throw FileError(path, "is a symbolic link, and nothing is written through one", isLink: true)
    }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw FileError(path, words(errno)) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw FileError(path, "is not a regular file") }
    guard status.st_size <= limit else {
      throw FileError(path, "has \(status.st_size) bytes; at most \(limit) are read")
    }
    guard let bytes = WholeFile.read(descriptor, limit: limit) else {
      throw FileError(path, words(errno))
    }
    guard bytes.count <= limit else { throw FileError(path, "grew while it was read") }
    return bytes
  }

  /// Writes a temporary file beside `path`, synchronizes it to disk, and renames it to `path`, which
  /// must still have the bytes `old`; `nil`: it must not exist.
  ///
  /// The new file has the mode of the one that it replaces, and its owner and group if this process
  /// may set them.
  ///
  /// - Throws: ``FileError`` when a step fails, or somebody has edited the file; it is then unchanged.
  package static func write(
    _ bytes: [UInt8],
    to path: String,
    replacing old: [UInt8]?
  ) throws(FileError) {
    var status = stat()
    let isThere = unsafe lstat(path, &status) == 0
    let draft = try writeDraft(
      bytes,
      of: path,
      mode: isThere ? status.st_mode & 0o777 : 0o644,
      owner: isThere ? (status.st_uid, status.st_gid) : nil
    )
    do throws(FileError) {
      guard try read(path) == old else {
        throw FileError(path, "was edited meanwhile, and left as it is; run the command again")
      }
      guard unsafe rename(draft, path) == 0 else {
        throw FileError(path, "cannot be written: \(words(errno))")
      }
    } catch {
      unlink(draft)
      throw error
    }
    syncFolder(of: path)
  }

  /// Writes a file that does not exist yet; an existing one is never replaced.
  ///
  /// - Throws: ``FileError`` when the file exists or a step fails.
  package static func create(
    _ bytes: [UInt8],
    at path: String,
    mode: mode_t = 0o644
  ) throws(FileError) {
    let draft = try writeDraft(bytes, of: path, mode: mode, owner: nil)
    defer { unlink(draft) }
    guard unsafe link(draft, path) == 0 else {
      throw FileError(path, errno == EEXIST ? "exists" : "cannot be written: \(words(errno))")
    }
    syncFolder(of: path)
  }

  /// Writes a file beside `path` and synchronizes it to disk; returns its path.
  private static func writeDraft(
    _ bytes: [UInt8],
    of path: String,
    mode: mode_t,
    owner: (user: uid_t, group: gid_t)?
  ) throws(FileError) -> String {
    let name = path.split(separator: "/").last ?? ""
    let draft = "\(FilePath.folder(of: path))/.\(name).\(getpid()).new"
    unlink(draft)
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    let descriptor = unsafe open(draft, flags, mode)
    guard descriptor >= 0 else { throw FileError(path, "cannot be written: \(words(errno))") }
    do throws(FileError) {
      defer { close(descriptor) }
      // Otherwise root would take the file away from a service that reads it by its group.
      if let owner {
        _ = fchown(descriptor, owner.user, owner.group)
        // The mask of this process is for new files.
        _ = fchmod(descriptor, mode)
      }
      try writeAll(bytes, to: descriptor, path)
      guard fsync(descriptor) == 0 else {
        throw FileError(path, "cannot be written: \(words(errno))")
      }
    } catch {
      unlink(draft)
      throw error
    }
    return draft
  }

  private static func syncFolder(of path: String) {
    let directory = unsafe open(FilePath.folder(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if directory >= 0 {
      fsync(directory)
      close(directory)
    }
  }

  /// Removes a file; a failure is ignored.
  package static func remove(_ path: String) { unlink(path) }

  /// Whether files can be created in a folder, which may still have to be made.
  package static func canWrite(into path: String) -> Bool {
    if unsafe access(path, W_OK | X_OK) == 0 { return true }
    guard errno == ENOENT else { return false }
    return unsafe access(FilePath.folder(of: path), W_OK | X_OK) == 0
  }

  /// Creates a folder if it does not exist; its parent must exist.
  ///
  /// - Throws: ``FileError`` when the folder cannot be created.
  package static func makeFolder(_ path: String) throws(FileError) {
    guard unsafe mkdir(path, 0o755) != 0, errno != EEXIST else { return }
    throw FileError(path, "the folder cannot be created: \(words(errno))")
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

  /// What an error number means, as a part of a sentence.
  static func words(_ code: Int32) -> String {
    unsafe String(cString: strerror(code)).lowercased()
  }
}

/// Why a file cannot be read or written.
package struct FileError: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String
  /// Whether the file is a symbolic link, wherever that leads.
  package let isLink: Bool

  package init(_ path: String, _ reason: String, isLink: Bool = false) {
    description = "\(path): \(reason)"
    self.isLink = isLink
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Durability
internal import Glibc

/// System calls on the journal's files; each failure names its call.
enum Files {
  /// What is at a path.
  struct Status: Sendable {
    var device: UInt
    var inode: UInt
    var mode: UInt32
    var owner: UInt32
    var size: Int
    /// The number of names that the file has.
    var links: UInt

    init(_ status: stat) {
      device = UInt(status.st_dev)
      inode = UInt(status.st_ino)
      mode = status.st_mode
      owner = status.st_uid
      size = Int(status.st_size)
      links = UInt(status.st_nlink)
    }

    var isLink: Bool { mode & S_IFMT == S_IFLNK }
    var isRegular: Bool { mode & S_IFMT == S_IFREG }

    func isSameFile(as other: Status) -> Bool { device == other.device && inode == other.inode }
  }

  /// The status of a path, without following links; `nil` if there is no file.
  static func status(_ path: String) throws(JournalFault) -> Status? {
    var status = stat()
    guard unsafe lstat(path, &status) != 0 else {
      return Status(status)
    }
    guard errno == ENOENT else { throw failure("lstat \(path)") }
    return nil
  }

  /// The status of an open file; `path` names it in errors.
  static func status(of descriptor: Int32, _ path: String) throws(JournalFault) -> Status {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw failure("fstat \(path)") }
    return Status(status)
  }

  /// The path of the file in its folder with every link in the folder's path resolved.
  ///
  /// The folder's path may contain links, as those of systemd's state folders do; the file must not
  /// be one. The last folder is created if it is missing.
  static func resolved(_ path: String) throws(JournalFault) -> String {
    guard !path.utf8.contains(0), let name = path.split(separator: "/").last, !path.hasSuffix("/")
    else { throw .failed(call: "journal \(path)", reason: "is not the path of a file") }
    let prefix = path.dropLast(name.utf8.count)
    let folder = prefix.isEmpty ? "." : String(prefix)
    if let real = realPath(folder) { return real == "/" ? "/\(name)" : "\(real)/\(name)" }
    guard errno == ENOENT else { throw failure("realpath \(folder)") }
    guard unsafe mkdir(folder, 0o700) == 0 || errno == EEXIST else {
      throw failure("mkdir \(folder)")
    }
    guard let real = realPath(folder) else { throw failure("realpath \(folder)") }
    return "\(real)/\(name)"
  }

  private static func realPath(_ path: String) -> String? {
    guard let found = unsafe realpath(path, nil) else { return nil }
    defer { unsafe free(found) }
    return unsafe String(cString: found)
  }

  /// Creates an empty file that only its owner can use.
  static func create(_ path: String) throws(JournalFault) {
    let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    let descriptor = unsafe open(path, flags, 0o600)
    guard descriptor >= 0 else { throw failure("open \(path)") }
    close(descriptor)
  }

  /// The first bytes of a file, fewer if it is shorter.
  static func head(of path: String, count: Int) throws(JournalFault) -> [UInt8] {
    let descriptor = unsafe open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw failure("open \(path)") }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: count)
    var got = 0
    while got < count {
      let more = unsafe bytes.withUnsafeMutableBytes { buffer in
        unsafe pread(descriptor, buffer.baseAddress.map { unsafe $0 + got }, count - got, got)
      }
      if more < 0, errno == EINTR { continue }
      guard more >= 0 else { throw failure("read \(path)") }
      if more == 0 { break }
      got += more
    }
    return Array(bytes[..<got])
  }

  /// Opens an existing file for `change` and syncs it afterwards.
  static func update(
    _ path: String,
    _ change: (Int32) throws(JournalFault) -> Void
  ) throws(JournalFault) {
    let descriptor = unsafe open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure("open \(path)") }
    defer { close(descriptor) }
    try change(descriptor)
    guard fsync(descriptor) == 0 else { throw failure("fsync \(path)") }
  }

  /// Writes bytes to the start of an open file.
  static func write(_ bytes: [UInt8], to descriptor: Int32, _ path: String) throws(JournalFault) {
    var place = 0
    while place < bytes.count {
      let count = unsafe bytes.withUnsafeBytes { buffer in
        unsafe pwrite(
          descriptor,
          buffer.baseAddress.map { unsafe $0 + place },
          bytes.count - place,
          place
        )
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw failure("pwrite \(path)") }
      place += count
    }
  }

  /// Removes a file if it exists.
  static func remove(_ path: String) throws(JournalFault) {
    guard unsafe unlink(path) == 0 || errno == ENOENT else { throw failure("unlink \(path)") }
  }

  static func move(_ path: String, to other: String) throws(JournalFault) {
    guard unsafe rename(path, other) == 0 else { throw failure("rename \(path)") }
  }

  /// Makes the names in the folder of `path` durable.
  static func syncFolder(of path: String) throws(JournalFault) {
    let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
    let name = folder.isEmpty ? "/" : folder
    let descriptor = unsafe open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure("open \(name)") }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw failure("fsync \(name)") }
  }

  /// The fault for `call` from `errno`.
  static func failure(_ call: String, _ code: Int32 = errno) -> JournalFault {
    switch code {
    case ENOSPC, EDQUOT, EFBIG: .diskFull
    case EROFS: .readOnly
    default: .failed(call: call, reason: unsafe String(cString: strerror(code)))
    }
  }
}

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
    guard let bytes = WholeFile.read(descriptor, limit: limit) else {
      throw Problem(message: describe(errno))
    }
    guard bytes.count <= limit else {
      throw Problem(message: "grew beyond \(limit) bytes while it was read")
    }
    return (bytes, trust)
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

  /// Whether both paths lead to the same file or folder, which exists.
  static func areSame(_ left: String, _ right: String) -> Bool {
    var (first, second) = (stat(), stat())
    return unsafe stat(left, &first) == 0 && stat(right, &second) == 0
      && first.st_dev == second.st_dev && first.st_ino == second.st_ino
  }

  private static func isLink(_ path: String) -> Bool {
    var status = stat()
    return unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
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

/// Paths in settings.
package enum FilePath {
  /// Resolves a relative path against `folder`.
  static func resolve(_ path: String, in folder: String?) -> String {
    guard let folder, path.utf8.first != UInt8(ascii: "/") else { return path }
    return join(folder, path)
  }

  /// The folder of a file; `.` for a bare name.
  package static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// The path of a file in a folder, in the form that messages have.
  package static func join(_ folder: String, _ name: String) -> String {
    if folder == "." { return name }
    return folder.utf8.last == UInt8(ascii: "/") ? folder + name : "\(folder)/\(name)"
  }
}

/// Reads passwords and tokens.
///
/// Messages never contain them.
struct Secrets {
  let environment: [String: String]
  let problems: Problems

  /// The maximum size of a secret, in bytes.
  private static let limit = 16 * 1024
  /// The shortest token that may protect an address beyond this machine, in characters.
  static let shortestToken = 16

  /// The password of the main broker.
  ///
  /// It comes from `SETTLE_MQTT_PASSWORD`, otherwise from the password file, otherwise from the
  /// service manager's credential `mqtt.password`.
  func mainPassword(_ positions: BrokerPositions) -> String? {
    if let password = environment["SETTLE_MQTT_PASSWORD"], !password.isEmpty { return password }
    if let password = secret(at: positions.passwordFile) { return password }
    guard positions.passwordFile == nil, let folder = environment["CREDENTIALS_DIRECTORY"],
      !folder.isEmpty
    else { return nil }
    let path = FilePath.join(folder, "mqtt.password")
    return secret(inFile: path, named: "the credential", at: .whole(path), isOptional: true)
  }

  /// The password in a `password_file`; `nil` where none is named.
  func secret(at file: (path: String, position: SourcePosition)?) -> String? {
    guard let (path, position) = file else { return nil }
    return secret(inFile: path, named: "password_file", at: position, isOptional: false)
  }

  /// The token that HTTP clients must present; `nil` when none is set.
  ///
  /// It comes from `SETTLE_HTTP_TOKEN`, otherwise from the token file, otherwise from the service
  /// manager's credential `http.token`.
  func token(in file: String?, at position: SourcePosition?) -> String? {
    if let token = environment["SETTLE_HTTP_TOKEN"], !token.isEmpty {
      return checked(token, named: "the token", at: .whole("$SETTLE_HTTP_TOKEN"))
    }
    if let file {
      return token(inFile: file, at: position ?? .whole(file), isOptional: false)
    }
    guard let folder = environment["CREDENTIALS_DIRECTORY"], !folder.isEmpty else { return nil }
    let path = FilePath.join(folder, "http.token")
    return token(inFile: path, at: .whole(path), isOptional: true)
  }

  private func token(
    inFile path: String,
    at position: SourcePosition,
    isOptional: Bool
  ) -> String? {
    secret(inFile: path, named: "token_file", at: position, isOptional: isOptional).flatMap {
      checked($0, named: "token_file: the token in '\(path)'", at: position)
    }
  }

  /// The content of a file that belongs to this user or root, and that others may not use.
  private func secret(
    inFile path: String,
    named name: String,
    at position: SourcePosition,
    isOptional: Bool
  ) -> String? {
    do throws(SafeFile.Problem) {
      let file = try SafeFile.read(path, limit: Self.limit, followsLinks: false)
      switch file.trust.flawOfProvided(for: FileTrust.user) {
      case .foreignOwner(let owner, let expected):
        problems.add(
          position,
          "\(name): '\(path)' belongs to user \(owner); it must belong to user \(expected), who runs "
            + "this, or to root"
        )
        return nil
      case .openToOthers(let mode):
        problems.add(
          position,
          "\(name): '\(path)' has mode \(String(mode, radix: 8)), which lets others read or write it; "
            + "allowed is 600, or 640 for a group (chmod 600 \(path))"
        )
        return nil
      case nil: return password(file.bytes, path: path, at: position)
      }
    } catch {
      if !isOptional || !error.isMissing {
        problems.add(position, "\(name): '\(path)' \(error.message)")
      }
      return nil
    }
  }

  /// Checks that a token fits in a header, and warns about a short one.
  private func checked(
    _ token: String,
    named name: String,
    at position: SourcePosition
  ) -> String? {
    guard token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      problems.add(position, "\(name) must be printable ASCII without spaces")
      return nil
    }
    if token.utf8.count < 22 {
      problems.warn(
        position,
        "\(name) has \(token.utf8.count) characters and can be guessed; "
          + "'openssl rand -hex 16' makes a good one"
      )
    }
    return token
  }

  /// Decodes a secret, without the line break that editors append.
  private func password(_ bytes: [UInt8], path: String, at position: SourcePosition) -> String? {
    var bytes = bytes
    while let last = bytes.last, last == 0x0A || last == 0x0D { bytes.removeLast() }
    guard let text = String(validating: bytes, as: UTF8.self), !text.utf8.contains(0) else {
      problems.add(position, "'\(path)' is not UTF-8 text")
      return nil
    }
    if text.isEmpty { problems.add(position, "'\(path)' is empty") }
    return text.isEmpty ? nil : text
  }
}

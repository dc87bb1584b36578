// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The folder that `settle init` writes: settings, device files, and a password.
package struct SetupFolder: Hashable, Sendable {
  static let passwordName = "mqtt.password"
  /// Where the settings of the whole machine are.
  package static let system = "/etc/settle"
  /// The user and the group of the service.
  private static let service = "settle"

  package let path: String
  package var settings: String { ImportPlan.path("settle.yaml", in: path) }
  package var devices: String { ImportPlan.path("devices", in: path) }
  package var password: String { ImportPlan.path(Self.passwordName, in: path) }
  /// Whether the service of this machine reads it.
  package var isSystem: Bool { path == Self.system }

  /// `path` is what the user wants; without it, the machine's for root, and `config` for others.
  package init(_ path: String?, isRoot: Bool = geteuid() == 0) {
    var path = path ?? (isRoot ? Self.system : "config")
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    self.path = path
  }

  /// Those of its files that exist, and would have to be replaced.
  package var present: [String] {
    let imported = ImportSource.allCases.flatMap {
      [ImportPlan.path($0.fileName, in: devices), ImportPlan.path($0.recordName, in: devices)]
    }
    return ([settings, password] + imported).filter { path in
      var status = stat()
      return unsafe lstat(path, &status) == 0
    }
  }

  /// Why nothing can be written there, as far as that is known before; `nil` if nothing is.
  package var obstacle: String? {
    var status = stat()
    let isThere = unsafe stat(path, &status) == 0
    if isThere, status.st_mode & S_IFMT != S_IFDIR { return "\(path) is not a folder" }
    if unsafe lstat(devices, &status) == 0 {
      // A link may lead to a folder, or nowhere.
      let isFound = unsafe stat(devices, &status) == 0
      guard isFound, status.st_mode & S_IFMT == S_IFDIR else { return "\(devices) is not a folder" }
      // The files in it are read too.
      if let reason = Self.reason(notToUse: devices, R_OK | W_OK | X_OK) { return reason }
    }
    return Self.reason(notToUse: isThere ? path : AtomicFile.folder(of: path), W_OK | X_OK)
  }

  private static func reason(notToUse folder: String, _ mode: Int32) -> String? {
    guard unsafe access(folder, mode) != 0 else { return nil }
    return unsafe "\(folder): \(String(cString: strerror(errno)).lowercased())"
  }

  /// Writes everything; after a failure, nothing is left of it.
  ///
  /// For the machine's folder, the group of the service may read the files, and the password
  /// belongs to the service. Others may read none of them.
  ///
  /// - Throws: ``FileError`` when a file exists or a step fails.
  package func write(
    settings text: String,
    password secret: String?,
    _ plan: ImportPlan?
  ) throws(FileError) {
    var undo: [() -> Void] = []
    do throws(FileError) {
      for folder in [path, devices] {
        let isNew = unsafe access(folder, F_OK) != 0
        try AtomicFile.makeFolder(folder)
        guard isNew else { continue }
        undo.append { _ = unsafe rmdir(folder) }
        // Files that an import adds get the group of the folder.
        try give(folder, mode: folder == path ? 0o750 : 0o2750, user: 0)
      }
      if let secret {
        try AtomicFile.create(Array((secret + "\n").utf8), at: password, mode: 0o600)
        undo.append { [password] in _ = unsafe unlink(password) }
        try give(password, mode: 0o600, user: nil)
      }
      for file in plan?.files ?? [] {
        try file.create()
        undo.append { for path in [file.path, file.recordPath] { _ = unsafe unlink(path) } }
        try give(file.path, mode: 0o640, user: 0)
        try give(file.recordPath, mode: 0o640, user: 0)
      }
      try AtomicFile.create(Array(text.utf8), at: settings)
      undo.append { [settings] in _ = unsafe unlink(settings) }
      try give(settings, mode: 0o640, user: 0)
    } catch {
      for action in undo.reversed() { action() }
      throw error
    }
  }

  /// Sets mode, owner and the service's group, for the machine's folder if there is such a group.
  ///
  /// `user` is the owner; `nil` for the user of the service.
  private func give(_ path: String, mode: mode_t, user: uid_t?) throws(FileError) {
    guard isSystem, let group = unsafe getgrnam(Self.service) else { return }
    let owner = unsafe user ?? getpwnam(Self.service)?.pointee.pw_uid ?? 0
    let isSet = unsafe chown(path, owner, group.pointee.gr_gid) == 0 && chmod(path, mode) == 0
    guard isSet else {
      let reason = unsafe String(cString: strerror(errno)).lowercased()
      throw FileError(path, "owner and mode cannot be set: \(reason)")
    }
  }
}

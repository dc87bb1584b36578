// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Values

/// The files that a gateway reads.
package struct GatewayFiles: ListedObject, Hashable, Sendable {
  /// The settings file; `nil` for built-in settings.
  package var settings: String?
  /// The folder with the device files.
  package var devices = ""
  /// The folder that is read after it, if it exists: where the gateway imports if it cannot write
  /// that one.
  package var stateDevices: String?

  package init() {}

  package init(settings: String?, devices: String, stateDevices: String? = nil) {
    self.settings = settings
    self.devices = devices
    self.stateDevices = stateDevices
  }

  package mutating func list(_ members: inout MemberList) {
    members.text("settings", &settings)
    members.text("devices", &devices, isNeeded: true)
    members.text("state_devices", &stateDevices, isShort: true)
  }

  /// The same files, with absolute paths.
  package var absolute: GatewayFiles { mapped(WorkingFolder.absolute) }

  /// The same files, with paths from the working folder where they are below it.
  package var relative: GatewayFiles { mapped(WorkingFolder.relative) }

  private func mapped(_ path: (String) -> String) -> GatewayFiles {
    GatewayFiles(
      settings: settings.map(path),
      devices: path(devices),
      stateDevices: stateDevices.map(path)
    )
  }
}

extension GatewayFiles {
  /// The file that root must not use because a gateway of the user `peer` names it.
  ///
  /// It belongs neither to root nor to that user. Other users can write only what is theirs anyway.
  /// A path that does not exist yet counts as the folder that it would be in.
  package func strange(
    to user: UInt32,
    saidBy peer: UInt32?,
    owner: (_ path: String) -> UInt32? = GatewayFiles.owner
  ) -> String? {
    guard user == 0, peer != 0 else { return nil }
    return [settings, devices, stateDevices].compactMap(\.self).first { path in
      guard let found = owner(path) else { return true }
      return found != 0 && found != peer
    }
  }

  /// The owner of a file, or of the nearest folder above it that exists.
  package static func owner(of path: String) -> UInt32? {
    var path = WorkingFolder.absolute(path)
    var info = stat()
    while unsafe stat(path, &info) != 0 {
      guard errno == ENOENT, let slash = path.lastIndex(of: "/"), path != "/" else { return nil }
      path = slash == path.startIndex ? "/" : String(path[..<slash])
    }
    return info.st_uid
  }
}

extension GatewayFiles: CustomStringConvertible {
  /// `home/settle.yaml and home/devices`.
  package var description: String {
    let folders = stateDevices.map { ", \(devices) and \($0)" } ?? " and \(devices)"
    return Excerpt.visible((settings ?? "built-in settings") + folders)
  }
}

/// Paths and the folder that this process works in.
package enum WorkingFolder {
  /// The folder's path; `nil` if it cannot be found out.
  private static var path: String? {
    guard let here = unsafe getcwd(nil, 0) else { return nil }
    defer { unsafe free(here) }
    return unsafe String(cString: here)
  }

  /// Whether there is a file or folder with this path.
  package static func exists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

  /// The path that names the same file in every folder.
  package static func absolute(_ path: String) -> String {
    guard !path.hasPrefix("/"), let here = self.path else { return path }
    let rest = path.hasPrefix("./") ? String(path.dropFirst(2)) : path
    return here == "/" ? "/\(rest)" : "\(here)/\(rest)"
  }

  /// The path from this folder, if it leads to something below it; otherwise as it is.
  package static func relative(_ path: String) -> String {
    guard let here = self.path, path.hasPrefix("\(here)/") else { return path }
    return String(path.dropFirst(here.count + 1))
  }
}

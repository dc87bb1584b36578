// Settle
// SPDX-License-Identifier: Apache-2.0

/// Paths in settings.
enum FilePath {
  /// Resolves a relative path against `folder`.
  static func resolve(_ path: String, in folder: String?) -> String {
    guard let folder, path.utf8.first != UInt8(ascii: "/") else { return path }
    return join(folder, path)
  }

  /// The folder of a file; `.` for a bare name.
  static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  static func join(_ folder: String, _ name: String) -> String {
    if folder == "." { return name }
    return folder.utf8.last == UInt8(ascii: "/") ? folder + name : "\(folder)/\(name)"
  }
}

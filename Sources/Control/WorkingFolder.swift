// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Paths and the folder that this process works in.
package enum WorkingFolder {
  /// The folder's path; `nil` if it cannot be found out.
  private static var path: String? {
    guard let here = unsafe getcwd(nil, 0) else { return nil }
    defer { unsafe free(here) }
    return unsafe String(cString: here)
  }

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

// Settle
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// A folder that is removed when the test ends.
final class TemporaryFolder {
  let path: String

  init(_ files: KeyValuePairs<String, String> = [:]) throws {
    path = FileManager.default.temporaryDirectory.path + "/settle-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    for (name, text) in files { try write(Array(text.utf8), to: name) }
  }

  /// Writes one file, which others may not use unless `mode` says so, and creates its folders.
  func write(_ bytes: [UInt8], to name: String, mode: Int = 0o600) throws {
    let file = path + "/" + name
    let folder = String(file[..<(file.lastIndex(of: "/") ?? file.endIndex)])
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try Data(bytes).write(to: URL(filePath: file))
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Finds the schemas of settings and device files, for the first line of files that are written.
package enum SchemaPlace {
  /// The names of the schemas.
  package enum Name: String, Sendable {
    case devices = "devices.schema.json"
    case settings = "settle.schema.json"
  }

  /// The schema that editors can read from a file in `folder`: one in the folder, beside it, or in
  /// a `config` beside it, else the installed one; `nil` if there is none.
  ///
  /// `program` is the path of this program, which is installed beside the schemas.
  package static func find(
    _ schema: Name = .devices,
    forFilesIn folder: String,
    program: String?
  ) -> String? {
    let name = schema.rawValue
    let near = [name, "../\(name)", "../config/\(name)"]
    if let found = near.first(where: { exists("\(folder)/\($0)") }) { return found }
    guard let program else { return nil }
    let parts = program.split(separator: "/", omittingEmptySubsequences: false)
    let installed = parts.dropLast(2).joined(separator: "/") + "/share/settle/\(name)"
    return exists(installed) ? installed : nil
  }

  /// The path of this program.
  package static var program: String? {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = unsafe readlink("/proc/self/exe", &buffer, buffer.count)
    guard count > 0 else { return nil }
    return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private static func exists(_ path: String) -> Bool { unsafe access(path, R_OK) == 0 }
}

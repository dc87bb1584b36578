// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations

/// Folders in the system's temporary directory.
package enum TemporaryFolder {
  package static func make(_ name: String) throws -> String {
    let root = Environment["TMPDIR"] ?? "/tmp"
    var template = Array("\(root)/\(name)-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else {
      throw PrivateBrokerError("no folder in \(root): \(errno)")
    }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Removes a folder and all that is below it.
  package static func remove(_ path: String) {
    if let directory = unsafe opendir(path) {
      while let entry = unsafe readdir(directory) {
        let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
          unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) {
            unsafe String(cString: $0)
          }
        }
        guard name != ".", name != ".." else { continue }
        if unsafe unlink("\(path)/\(name)") != 0, errno == EISDIR { remove("\(path)/\(name)") }
      }
      unsafe closedir(directory)
    }
    unsafe rmdir(path)
  }
}

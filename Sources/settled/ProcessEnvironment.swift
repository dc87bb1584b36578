// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The environment of this process.
enum ProcessEnvironment {
  static func all() -> [String: String] {
    var result: [String: String] = [:]
    var entry = unsafe environ
    while let text = unsafe entry.pointee {
      let line = unsafe String(cString: text)
      if let equals = line.firstIndex(of: "=") {
        result[String(line[..<equals])] = String(line[line.index(after: equals)...])
      }
      unsafe entry += 1
    }
    return result
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The environment of this process.
package enum Environment {
  /// The value of a variable; `nil` if it is not set.
  package static subscript(name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }

  /// Every variable with its value.
  package static var all: [String: String] {
    var variables: [String: String] = [:]
    var entry = unsafe environ
    while let text = unsafe entry.pointee {
      let line = unsafe String(cString: text)
      if let equals = line.firstIndex(of: "=") {
        variables[String(line[..<equals])] = String(line[line.index(after: equals)...])
      }
      unsafe entry += 1
    }
    return variables
  }
}

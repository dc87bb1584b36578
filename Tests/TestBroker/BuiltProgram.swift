// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations

/// The programs that were built together with the tests.
package enum BuiltProgram {
  /// The path of `settle` or `settled` beside the test bundle; the bare name if it is not there.
  package static func path(_ name: String) -> String {
    // The bundle is loaded by a runner elsewhere; its own file is what is mapped.
    let maps = TextFile.read("/proc/self/maps") ?? ""
    for line in maps.split(separator: "\n") where line.hasSuffix(".xctest") {
      guard let start = line.firstIndex(of: "/") else { continue }
      let folder = line[start...].split(separator: "/").dropLast().joined(separator: "/")
      let program = "/\(folder)/\(name)"
      if unsafe access(program, X_OK) == 0 { return program }
    }
    return name
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import Glibc
import Operations
import Testing

/// Device files as `settle check` reads them.
enum Loaded {
  /// The devices of files by name.
  static func devices(_ files: [String: String]) throws -> [Device] {
    let folder = try TemporaryFolder.make("settle-import")
    defer { TemporaryFolder.remove(folder) }
    for (name, text) in files { try TextFile.write(text, to: "\(folder)/\(name)") }
    do throws(ConfigurationFailure) {
      return try ConfigurationLoader.loadDevices(in: folder).registry.devices.map { $0 }
    } catch {
      for problem in error.problems { Issue.record("\(problem)") }
      return []
    }
  }
}

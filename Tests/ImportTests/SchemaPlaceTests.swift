// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Import
import Operations
import Testing

/// Imported files name a schema that exists.
struct SchemaPlaceTests {
  @Test func `the schema beside the folder comes first, then the installed one, then none`() throws
  {
    let root = try TemporaryFolder.make("settle-schema")
    defer {
      for path in ["config", "share/settle", "share"] { TemporaryFolder.remove("\(root)/\(path)") }
      TemporaryFolder.remove(root)
    }
    for path in ["devices", "config", "share", "share/settle"] {
      try #require(unsafe mkdir("\(root)/\(path)", 0o700) == 0)
    }
    defer { unsafe rmdir("\(root)/devices") }
    func place() -> String? {
      SchemaPlace.find(forFilesIn: "\(root)/devices", program: "\(root)/bin/settled")
    }
    #expect(place() == nil)

    let installed = "\(root)/share/settle/devices.schema.json"
    try TextFile.write("{}", to: installed)
    #expect(place() == installed)

    try TextFile.write("{}", to: "\(root)/config/devices.schema.json")
    #expect(place() == "../config/devices.schema.json")
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import FuzzTargets
import Glibc
import Testing

/// Hands every kept input to its fuzz target, without a fuzzer: what was found once stays mended.
@Suite struct CorpusTests {
  private static let corpus = (0..<2).reduce(URL(filePath: #filePath)) { url, _ in
    url.deletingLastPathComponent()
  }.appending(path: "fuzz/corpus").path()

  private static func inputs(of target: String) throws -> [[UInt8]] {
    let folder = corpus + "/" + target
    return try FileManager.default.contentsOfDirectory(atPath: folder).map {
      Array(try Data(contentsOf: URL(filePath: folder + "/" + $0)))
    }
  }

  @Test func `every target has inputs`() throws {
    let folders = try FileManager.default.contentsOfDirectory(atPath: Self.corpus)
    #expect(folders.sorted() == FuzzTarget.all.keys.sorted())
    for folder in folders { #expect(try !Self.inputs(of: folder).isEmpty) }
  }

  @Test(arguments: FuzzTarget.all.keys.sorted())
  func `a target survives its inputs`(target: String) async {
    // In another process: a target traps when it finds something.
    await #expect(processExitsWith: .success) { [target] in
      let folder = FileManager.default.temporaryDirectory.appending(
        path: "settle-corpus-\(UUID().uuidString)"
      ).path()
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      unsafe setenv("TMPDIR", folder, 1)
      let run = try #require(FuzzTarget.all[target])
      for input in try Self.inputs(of: target) { run(input) }
      try FileManager.default.removeItem(atPath: folder)
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Checks that the samples in the documentation equal those that are compiled and run.
@Suite struct ArticleTests {
  /// The package's folder, four levels above this file.
  private static let root = (0..<4).reduce(URL(filePath: #filePath)) { url, _ in
    url.deletingLastPathComponent()
  }

  private static let articles = [
    "Sources/LastOut/LastOut.docc/LastOut.md",
    "Sources/LastOut/LastOut.docc/Settling.md",
    "Sources/LastOut/LastOut.docc/Tasks.md",
    "Sources/LastOut/LastOut.docc/Testing.md",
    "Sources/LastOut/LastOut.docc/Queues.md",
    "docs/library.md",
  ]

  private static func read(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  /// The fenced Swift blocks of an article.
  private static func blocks(of article: String) -> [[Substring]] {
    var blocks: [[Substring]] = []
    var isInside = false
    for line in article.split(separator: "\n", omittingEmptySubsequences: false) {
      switch (isInside, line) {
      case (false, "```swift"):
        isInside = true
        blocks.append([])
      case (true, "```"): isInside = false
      case (true, _): blocks[blocks.count - 1].append(line)
      case (false, _): break
      }
    }
    return blocks
  }

  @Test(arguments: articles)
  func `every sample of an article is compiled`(article: String) throws {
    let samples = try ["QueueSamples", "TaskSamples", "AsyncSamples", "ProgramSamples"].map {
      try Self.read("Tests/LastOutTests/Samples/\($0).swift")
    }
    let blocks = Self.blocks(of: try Self.read(article))
    #expect(!blocks.isEmpty)
    for block in blocks {
      let indented = block.map { $0.isEmpty ? "" : "    \($0)" }.joined(separator: "\n") + "\n"
      #expect(samples.contains { $0.contains(indented) }, "not compiled:\n\(indented)")
    }
  }

  @Test func `every article is tested`() throws {
    let found = try FileManager.default.contentsOfDirectory(
      atPath: Self.root.appending(path: "Sources/LastOut/LastOut.docc").path
    )
    let listed = Self.articles.compactMap { $0.split(separator: "/").last.map(String.init) }
    #expect(found.filter { $0.hasSuffix(".md") }.allSatisfy(listed.contains))
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import HTTP
import Testing

@Suite struct ContentCodingTests {
  @Test(arguments: [
    (["gzip"], true), (["deflate, gzip;q=0.5"], true), (["*"], true), (["br", "GZIP"], true),
    ([], false), (["identity"], false), (["gzip;q=0"], false), (["gzip; q=0.0, *"], false),
    (["*;q=0"], false), (["br"], false),
  ])
  func `gzip is used where the client accepts it`(values: [String], isAccepted: Bool) {
    #expect(ContentCoding.acceptsGzip(values) == isAccepted)
  }

  @Test func `a text that repeats itself becomes short, in one part or in several`() {
    let text = Array(String(repeating: "settle ", count: 4000).utf8)
    var parts: [UInt8] = []
    let writer = GzipWriter()
    for start in stride(from: 0, to: text.count, by: 1000) {
      let part = Array(text[start..<min(text.count, start + 1000)])
      writer.append(part, isLast: start + 1000 >= text.count, to: &parts)
    }
    for packed in [GzipWriter.best(text), parts] {
      #expect(packed.prefix(2) == [0x1f, 0x8b])
      #expect(packed.count < 500)
      // The last four bytes are the length of the text.
      #expect(packed.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) } == text.count)
    }
  }
}

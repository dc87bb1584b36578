// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Testing

struct LineFramerTests {
  /// The lines of `chunks` as `number:text`, `number!` for one that is too long, and `number~text`
  /// for what remained at the end.
  private func frames(_ chunks: [[UInt8]], limit: Int = 64) -> [String] {
    var framer = LineFramer(limit: limit)
    var frames: [String] = []
    for chunk in chunks {
      framer.append(chunk.span)
      while let output = framer.next() {
        switch output {
        case .line(let bytes, let number):
          frames.append("\(number):\(String(decoding: bytes, as: UTF8.self))")
        case .tooLong(let number): frames.append("\(number)!")
        }
      }
    }
    if case .line(let rest, let number) = framer.finish() {
      frames.append("\(number)~\(String(decoding: rest, as: UTF8.self))")
    }
    return frames
  }

  private static let table: [(input: String, frames: [String])] = [
    ("", []),
    ("a\n", ["1:a"]),
    ("a\nb\n", ["1:a", "2:b"]),
    ("a\r\nb\r\n", ["1:a", "2:b"]),
    ("\n\r\n \t\na\n", ["4:a"]),
    ("a\nhalf", ["1:a", "2~half"]),
    ("a\n  ", ["1:a"]),
    ("a\rb\n", ["1:a\rb"]),
    ("12345678\n", ["1:12345678"]),
    ("12345678\r\n", ["1:12345678"]),
    ("123456789\nb\n", ["1!", "2:b"]),
    ("12345678901234567890\nb\n1234567890\r\nc", ["1!", "2:b", "3!", "4~c"]),
    ("12345678901234567890", ["1!"]),
    ("12345678901234567890\n", ["1!"]),
    ("é\u{0}x\n", ["1:é\u{0}x"]),
  ]

  @Test(arguments: table)
  func `lines do not depend on where the stream is cut`(input: String, frames expected: [String]) {
    let bytes = Array(input.utf8)
    #expect(frames([bytes], limit: 8) == expected)
    #expect(frames(bytes.map { [$0] }, limit: 8) == expected)
    for cut in 0...bytes.count {
      #expect(frames([Array(bytes[..<cut]), Array(bytes[cut...])], limit: 8) == expected)
    }
  }

  @Test func `bytes that are not UTF-8 pass through, and the reader refuses them`() throws {
    var framer = LineFramer()
    framer.append([0xFF, 0xFE, 0x0A].span)
    #expect(framer.next() == .line([0xFF, 0xFE], number: 1))
  }

  @Test func `an endless line costs its limit and one chunk`() {
    var framer = LineFramer(limit: 1000)
    let chunk = [UInt8](repeating: 0x61, count: 500)
    var reports: [LineFramer.Output] = []
    for _ in 0..<10_000 {
      framer.append(chunk.span)
      while let output = framer.next() { reports.append(output) }
    }
    #expect(reports == [.tooLong(number: 1)])
    #expect(framer.finish() == nil)
  }
}

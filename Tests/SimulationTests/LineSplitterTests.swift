// Settle
// SPDX-License-Identifier: Apache-2.0

import Simulation
import Testing

@Suite struct LineSplitterTests {
  /// Writes each line as `number:text`, with `!` for one that is too long.
  private struct Notes: LineSink {
    var lines: [String] = []

    mutating func take(_ line: borrowing LineSplitter.Line, number: Int) {
      switch line {
      case .text(let bytes):
        let text = String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self)
        lines.append("\(number):\(text)")
      case .tooLong: lines.append("\(number)!")
      }
    }
  }

  private func split(_ chunks: [String], limit: Int = 100) -> [String] {
    var splitter = LineSplitter(limit: limit)
    var notes = Notes()
    for chunk in chunks { splitter.append(Array(chunk.utf8).span, to: &notes) }
    splitter.finish(to: &notes)
    return notes.lines
  }

  @Test(arguments: [
    (["a\nb\n"], ["1:a", "2:b"]),
    (["a\nb"], ["1:a", "2:b"]),
    (["a", "b\nc", "d\n"], ["1:ab", "2:cd"]),
    (["a\r\nb\r", "\n"], ["1:a", "2:b"]),
    (["a\n\n \t\nb\n"], ["1:a", "4:b"]),
    ([], []),
    (["", "\n"], []),
  ])
  func `lines are cut wherever the stream is cut`(chunks: [String], lines: [String]) {
    #expect(split(chunks) == lines)
  }

  @Test(arguments: [
    ["12345\n123456\n12\n"], ["12345\n123", "456\n12\n"], ["12345\n1234567", "89", "\n12"],
  ])
  func `a line beyond the limit is reported and the next one is whole`(chunks: [String]) {
    #expect(split(chunks, limit: 5) == ["1:12345", "2!", "3:12"])
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Synchronization
import Testing

@testable import Operations

@Suite struct LoggerTests {
  /// The lines a log writes, as under systemd: without the time, which differs.
  private func lines(_ level: Logger.Level, _ body: (Logger) -> Void) -> [String] {
    let lines = Lines()
    body(Logger(minimum: level, isJournal: true) { lines.add($0) })
    return lines.all
  }

  @Test func `a line has a message and facts, quoted where they need it`() {
    let written = lines(.info) {
      $0.warning("Broker lost", ["broker": "main", "reason": "connection reset", "empty": ""])
    }
    #expect(written == [#"<4>Broker lost broker=main reason="connection reset" empty="""#])
  }

  @Test(arguments: [
    ("two\nlines", #""two\nlines""#), ("\u{1B}[31m", #""\u{1b}[31m""#), ("a\0b", #""a\u{0}b""#),
    (#"say "hi""#, #""say \"hi\"""#), (#"a\b"#, #""a\\b""#), ("grün", "grün"),
    ("\u{2028}", #""\u{2028}""#), ("\u{9B}31m", #""\u{9b}31m""#), ("a=b", #""a=b""#),
  ])
  func `nothing in a fact breaks the line or the terminal`(value: String, shown: String) {
    #expect(lines(.info) { $0.info("M", ["k": value]) } == ["<6>M k=\(shown)"])
  }

  @Test func `events below the level are not written`() {
    let written = lines(.warning) {
      $0.debug("a")
      $0.info("b")
      $0.warning("c")
      $0.error("d")
    }
    #expect(written == ["<4>c", "<3>d"])
  }

  @Test func `outside systemd a line begins with time and level`() throws {
    let lines = Lines()
    Logger(level: .info) { lines.add($0) }.info("Started", ["pid": "7"])
    let line = try #require(lines.all.first)
    #expect(line.dropFirst(24) == " info Started pid=7")
    #expect(line.dropFirst(23).first == "Z")
  }

  @Test func `a reader that hangs does not stop the program, and sees the number of lost lines`()
    throws
  {
    let pipe = try Pipe()
    let sink = StandardErrorSink(descriptor: pipe.writer)
    let long = String(repeating: "x", count: 5000)
    // Nothing is read while these return.
    for _ in 0..<40 { sink.write(long) }
    var bytes = [UInt8](repeating: 0, count: 1 << 17)
    let filled = unsafe read(pipe.reader, &bytes, bytes.count)
    #expect(filled == 16 * StandardErrorSink.longestLine)
    sink.write("again")
    let count = unsafe read(pipe.reader, &bytes, bytes.count)
    #expect(String(decoding: bytes[..<count], as: UTF8.self) == "again dropped_lines=24\n")
  }
}

private final class Lines: Sendable {
  private let lines = Mutex<[String]>([])
  var all: [String] { lines.withLock { $0 } }
  func add(_ line: String) { lines.withLock { $0.append(line) } }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

@testable import Gateway
import Testing

struct ControlOutputTests {
  private func line(_ text: String) -> (inout [UInt8]) -> Void {
    { $0 += Array(text.utf8) }
  }

  @Test func `events count until they were sent to their end`() {
    var output = ControlOutput()
    output.append(isEvent: false, line("reply"))
    for text in ["a", "bb", "ccc"] { output.append(isEvent: true, line(text)) }
    #expect((output.unsent, output.unsentEvents, output.unsentEventBytes) == (15, 3, 9))

    output.advance(by: 7)  // The reply and half of the first event.
    #expect((output.unsent, output.unsentEvents) == (8, 3))
    output.advance(by: 1)
    #expect(output.unsentEvents == 2)
    output.advance(by: 7)
    output.compact()
    #expect((output.unsent, output.unsentEvents, output.unsentEventBytes) == (0, 0, 0))
  }

  @Test func `what was sent is freed while more comes`() {
    var output = ControlOutput()
    let event = String(repeating: "x", count: 999)
    for _ in 0..<1000 { output.append(isEvent: true, line(event)) }
    output.advance(by: 600_500)
    output.compact()
    #expect((output.sent, output.bytes.count) == (0, 399_500))
    #expect(output.unsentEvents == 400)
    output.advance(by: 500)
    #expect(output.unsentEvents == 399)
  }

  @Test(arguments: [(0, ""), (3, "e\n"), (5, ""), (6, "wo\n")])
  func `the rest of a line that was sent in part stays`(sent: Int, rest: String) {
    var output = ControlOutput()
    output.append(isEvent: true, line("aone"))
    output.append(isEvent: true, line("two"))
    output.advance(by: sent)

    output.removeUnsent()

    #expect(String(decoding: output.bytes, as: UTF8.self) == rest)
    #expect(output.unsentEvents == 0)
  }

  @Test func `lines that come while one is written in parts follow it`() {
    var output = ControlOutput()
    output.appendPart(line("ab"))
    output.append(isEvent: true, line("event"))
    output.advance(by: 2)
    output.compact()
    #expect((output.sendable, output.unsent, output.unsentEvents) == (0, 6, 1))
    output.appendPart(line("cd"))
    output.endLine()
    #expect(String(decoding: output.bytes, as: UTF8.self) == "cd\nevent\n")
    output.advance(by: 9)
    #expect((output.unsent, output.unsentEvents) == (0, 0))
  }

  @Test(arguments: [(0, "reply\n", ""), (6, "", ""), (7, "b\n", "\n"), (8, "\n", "\n")])
  func `a line that is written in parts can be given up`(sent: Int, broken: String, left: String) {
    var output = ControlOutput()
    output.append(isEvent: false, line("reply"))
    output.appendPart(line("ab"))
    output.advance(by: sent)
    var other = output
    other.removeUnsent()
    #expect(String(decoding: other.bytes, as: UTF8.self) == left)

    output.breakLine()
    let rest = output.bytes[output.sent...]
    #expect(String(decoding: rest, as: UTF8.self) == broken)
  }

  @Test func `a line that was sent in part ends although its beginning was freed`() {
    var output = ControlOutput()
    output.append(isEvent: true, line(String(repeating: "x", count: 199_999)))
    output.advance(by: 150_000)
    output.compact()
    output.removeUnsent()
    #expect(output.bytes.count == 50_000)
  }
}

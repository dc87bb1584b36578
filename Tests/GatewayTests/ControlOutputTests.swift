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
}

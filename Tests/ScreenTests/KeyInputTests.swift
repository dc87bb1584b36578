// Settle
// SPDX-License-Identifier: Apache-2.0

@testable import Screen
import Testing

struct KeyInputTests {
  @Test(arguments: [
    ("a+", [ScreenKey.character("a"), .character("+")]),
    ("\r\n", [.enter, .enter]),
    ("\u{7F}\u{8}", [.backspace, .backspace]),
    ("\u{C}", [.redraw]),
    ("\u{1}\u{90}x", [.character("x")]),
    ("\u{1B}", [.escape]),
    ("\u{1B}\u{1B}", [.escape, .escape]),
    ("\u{1B}[C\u{1B}OA", [.right, .up]),
    ("\u{1B}[Dq", [.left, .character("q")]),
    ("\u{1B}[1;5Cq", [.character("q")]),
    ("\u{1B}[15~q", [.character("q")]),
    ("\u{1B}q", [.escape, .character("q")]),
    ("\u{1B}[", []),
    ("ü電", [.character("ü"), .character("電")]),
  ])
  func `characters become keys and unknown sequences are ignored`(text: String, keys: [ScreenKey]) {
    #expect(KeyInput.keys(text.unicodeScalars.map(KeyInput.scalar)) == keys)
  }

  @Test func `an Escape before a known key is a key of its own`() {
    let inputs: [KeyInput] = [.scalar("\u{1B}"), .key(.up), .scalar("j")]
    #expect(KeyInput.keys(inputs) == [.escape, .up, .character("j")])
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Testing

struct SuggestionTests {
  @Test(arguments: [
    ("brigthness", "brightness"), ("BRIGHTNESS", "brightness"), ("colour", "color"),
    ("desklamp", nil), ("x", nil), (String(repeating: "b", count: 5000), nil),
  ])
  func `a suggestion differs in at most a third of its letters`(
    word: String,
    candidate: String?
  ) {
    #expect(Suggestion.nearest(to: word, in: ["brightness", "color", "power"]) == candidate)
  }

  @Test(arguments: [("powr", #"; did you mean "power"?"#), ("zzz", "")])
  func `a hint follows a message or is empty`(word: String, hint: String) {
    #expect(Suggestion.hint(for: word, in: ["color", "power"]) == hint)
  }

  @Test func `an excerpt is short and cannot control a terminal`() {
    #expect(Excerpt.of("a\u{1B}[2J\n\u{202E}é") == "a\\u{1b}[2J\\n\\u{202e}é")
    #expect(
      Excerpt.of(String(repeating: "é", count: 61)) == String(repeating: "é", count: 60) + "…"
    )
  }

  @Test(arguments: [("21,5", "21.5"), (" 1,5 ", "1.5"), ("1,2,3", nil), ("x,5", nil), ("7", nil)])
  func `a decimal comma suggests a decimal point`(text: String, number: String?) {
    #expect(NumberText.suggestion(for: text) == number)
  }
}

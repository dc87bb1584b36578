// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Testing

struct DurationTextTests {
  @Test(arguments: [
    ("0", Duration.zero),
    ("0s", .zero),
    ("300ms", .milliseconds(300)),
    ("2s", .seconds(2)),
    ("1.5s", .milliseconds(1500)),
    ("5m", .seconds(300)),
    ("1h", .seconds(3600)),
    ("0.5ms", .microseconds(500)),
    ("87600h", .seconds(315_360_000)),
  ])
  func `durations have a unit`(text: String, duration: Duration) throws {
    #expect(try DurationText.parse(text) == duration)
    #expect(try DurationText.parse(DurationText.text(duration)) == duration)
  }

  @Test(arguments: [
    (Duration.zero, "0"), (.milliseconds(300), "300ms"), (.milliseconds(1500), "1500ms"),
    (.seconds(2), "2s"), (.seconds(300), "5m"), (.seconds(90), "90s"), (.seconds(7200), "2h"),
    (.microseconds(1250), "1.25ms"),
  ])
  func `durations are written in the largest unit that is whole`(duration: Duration, text: String) {
    #expect(DurationText.text(duration) == text)
  }

  @Test(arguments: [
    ("5", DurationTextError.missingUnit("5")), ("1.5", .missingUnit("1.5")),
    ("", .malformed("")), ("s", .malformed("s")), ("-2s", .malformed("-2s")),
    ("+2s", .malformed("+2s")), ("2 s", .malformed("2 s")), ("1e3s", .malformed("1e3s")),
    ("2.s", .malformed("2.s")), (".5s", .malformed(".5s")), ("2d", .malformed("2d")),
    ("nans", .malformed("nans")), ("1,5s", .malformed("1,5s")), ("2S", .malformed("2S")),
    ("87601h", .tooLong("87601h")), ("99999999999999999999s", .tooLong("99999999999999999999s")),
  ])
  func `anything else is refused`(text: String, error: DurationTextError) {
    #expect(throws: error) { try DurationText.parse(text) }
  }

  @Test(arguments: [
    ("brigthness", "brightness"), ("BRIGHTNESS", "brightness"), ("colour", "color"),
    ("desklamp", nil), ("x", nil), (String(repeating: "b", count: 5000), nil),
  ])
  func `a near miss is a candidate that differs in a third of its letters at most`(
    word: String,
    candidate: String?
  ) {
    #expect(NearMiss.of(word, among: ["brightness", "color", "power"]) == candidate)
  }
}

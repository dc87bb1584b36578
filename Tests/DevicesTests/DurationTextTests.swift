// Settle
// SPDX-License-Identifier: Apache-2.0

import Testing
import Values

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
    ("8784h", .seconds(31_622_400)),
  ])
  func `durations have a unit`(text: String, duration: Duration) throws {
    #expect(try DurationText.read(text) == duration)
    #expect(try DurationText.read(DurationText.text(duration)) == duration)
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
    ("1.2.3s", .malformed("1.2.3s")), ("٣s", .malformed("٣s")), ("300", .missingUnit("300")),
    ("8785h", .tooLong("8785h")), ("9999h", .tooLong("9999h")),
    ("99999999999999999999s", .tooLong("99999999999999999999s")),
  ])
  func `other texts are rejected`(text: String, error: DurationTextError) {
    #expect(throws: error) { try DurationText.read(text) }
    #expect(DurationText.parse(text) == nil)
  }

  @Test(arguments: [
    ("5", #"needs a unit, found "5"; did you mean "5s" or "5ms"?"#),
    ("soon", #"must be a duration such as 300ms, 2s, 5m or 1h, found "soon""#),
    (
      "2 Sec",
      #"must be a duration such as 300ms, 2s, 5m or 1h, found "2 Sec"; did you mean "2s"?"#
    ),
    ("9999h", #"is too long, found "9999h"; one year is the most"#),
  ])
  func `an error states the allowed forms and a suggestion`(text: String, message: String) {
    let error = #expect(throws: DurationTextError.self) { try DurationText.read(text) }
    #expect(error?.description == message)
  }
}

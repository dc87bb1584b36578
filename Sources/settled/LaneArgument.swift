// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Devices
import Values

/// The value of `--lane`: the limits of a lane, as `rate=10/s,burst=5` or `window=8`.
struct LaneArgument: ArgumentValue {
  private static let forms = "limits such as rate=10/s, rate=10/s,burst=5 or window=auto"

  private(set) var limits = LaneLimits()

  init(argument: String) throws(ArgumentValueError) {
    var burst: Int?
    for part in argument.split(separator: ",", omittingEmptySubsequences: false) {
      let words = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard words.count == 2 else {
        throw ArgumentValueError(expected: Self.forms, found: argument)
      }
      let text = String(words[1])
      switch words[0] {
      case "rate": limits.rate = LaneLimits.Rate(perSecond: try Self.rate(text))
      case "burst": burst = try Self.count("burst", text, in: 1...100_000)
      case "window" where text == "auto": limits.window = .auto
      case "window":
        let size = try Self.count("window", text, in: 1...1000)
        limits.window = LaneLimits.Window(start: size, min: size, max: size)
      default:
        throw ArgumentValueError(
          expected: Self.forms,
          found: argument,
          meant: Suggestion.nearest(to: String(words[0]), in: ["rate", "burst", "window"])
        )
      }
    }
    guard let burst else { return }
    guard limits.rate != nil else {
      throw ArgumentValueError(expected: "burst with a rate", found: argument)
    }
    limits.rate?.burst = burst
  }

  private static func rate(_ text: String) throws(ArgumentValueError) -> Double {
    if let rate = RateText.parse(text) { return rate }
    throw ArgumentValueError(
      expected: RateText.forms,
      found: text,
      meant: RateText.suggestion(for: text)
    )
  }

  private static func count(
    _ name: String,
    _ text: String,
    in range: ClosedRange<Int>
  ) throws(ArgumentValueError) -> Int {
    if let count = Int(text), range.contains(count) { return count }
    throw ArgumentValueError(
      expected: "a \(name) from \(range.lowerBound) to \(range.upperBound)",
      found: text
    )
  }
}

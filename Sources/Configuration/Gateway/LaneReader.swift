// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices

/// Reads the limits of one lane: `rate` and `burst`, `window`, or both.
struct LaneReader {
  private static let windowForms =
    "auto, a whole number from 1 to 1000, or a section with start, min and max"

  private let section: Section

  init(_ section: Section) { self.section = section }

  func limits() -> LaneLimits {
    let limits = LaneLimits(rate: rate(), window: window())
    if section["rate"] == nil, section["window"] == nil {
      section.missing("rate", "\(RateText.forms), or 'window', such as auto")
    }
    return limits
  }

  private func rate() -> LaneLimits.Rate? {
    let burst = section.integer("burst", in: 1...100_000)
    guard let node = section["rate"] else {
      if burst != nil, section["window"] != nil {
        section.missing("rate", "'burst' says how many commands may exceed it")
      }
      return nil
    }
    guard let text = node.text, let rate = RateText.parse(text) else {
      return section.reject(
        node,
        "rate",
        expected: RateText.forms,
        suggestion: node.text.flatMap { RateText.suggestion(for: $0) }
      )
    }
    return LaneLimits.Rate(perSecond: rate, burst: burst ?? 1)
  }

  private func window() -> LaneLimits.Window? {
    guard let node = section["window"] else { return nil }
    if node.pairs != nil { return section.nested("window", .window).flatMap(window) }
    if node.text == "auto" { return .auto }
    guard let word = node.word, let size = Int(word), Self.sizes.contains(size) else {
      return section.reject(node, "window", expected: Self.windowForms)
    }
    return LaneLimits.Window(start: size, min: size, max: size)
  }

  private static let sizes = 1...1000

  private func window(_ fields: Section) -> LaneLimits.Window? {
    var window = LaneLimits.Window.auto
    let start = fields.integer("start", in: Self.sizes)
    if let min = fields.integer("min", in: Self.sizes) { window.min = min }
    if let max = fields.integer("max", in: Self.sizes) { window.max = max }
    guard window.min <= window.max else {
      let place = fields["min"] ?? fields["max"]
      return place.flatMap {
        fields.reject($0, "min", expected: "at most 'max', which is \(window.max)")
      }
    }
    window.start = start ?? Swift.min(Swift.max(window.start, window.min), window.max)
    guard window.min <= window.start, window.start <= window.max else {
      return fields["start"].flatMap {
        fields.reject($0, "start", expected: "from \(window.min) to \(window.max)")
      }
    }
    return window
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A chart in a picture: two axes, lines, areas, dots and labels, in the units of its axes.
struct SVGChart {
  struct Point {
    var x: Double
    var y: Double
  }

  /// What an axis shows.
  struct Axis {
    var range: ClosedRange<Double>
    var ticks: [Double]
    var label: String
    /// Whether equal factors are equally far apart.
    var isLogarithmic = false

    /// The part of the axis before `value`.
    func share(of value: Double) -> Double {
      let value = min(max(value, range.lowerBound), range.upperBound)
      if isLogarithmic {
        return log(value / range.lowerBound) / log(range.upperBound / range.lowerBound)
      }
      return (value - range.lowerBound) / (range.upperBound - range.lowerBound)
    }
  }

  let left: Double
  let top: Double
  let width: Double
  let height: Double
  let x: Axis
  let y: Axis
  private(set) var text = ""

  init(title: String, left: Double, top: Double, width: Double, height: Double, x: Axis, y: Axis) {
    self.left = left
    self.top = top
    self.width = width
    self.height = height
    self.x = x
    self.y = y
    label(title, left, top - 34, anchor: "start", "title")
    drawAxes()
  }

  private mutating func drawAxes() {
    for tick in y.ticks {
      let at = vertical(tick)
      line("grid", left, at, left + width, at)
      label(Self.text(tick), left - 6, at + 4, anchor: "end")
    }
    for tick in x.ticks {
      let at = horizontal(tick)
      line("grid", at, top + height, at, top + height + 4)
      label(Self.text(tick), at, top + height + 17, anchor: "middle")
    }
    line("base", left, top + height, left + width, top + height)
    label(x.label, left + width / 2, top + height + 34, anchor: "middle")
    if !y.label.isEmpty {
      let at = "\(Self.text(left - 30)),\(Self.text(top + height / 2))"
      add(
        "<text class=\"small\" text-anchor=\"middle\" transform=\"translate(\(at)) rotate(-90)\">"
          + "\(y.label)</text>"
      )
    }
  }

  /// A line through points.
  mutating func line(_ points: [Point], _ style: String) {
    add("<polyline class=\"\(style)\" points=\"\(coordinates(points))\"/>")
  }

  /// The area below a line.
  mutating func area(_ points: [Point], _ style: String) {
    guard let first = points.first, let last = points.last else { return }
    let corners = [
      Point(x: last.x, y: y.range.lowerBound), Point(x: first.x, y: y.range.lowerBound),
    ]
    add("<polygon class=\"\(style)\" points=\"\(coordinates(points + corners))\"/>")
  }

  mutating func dot(_ point: Point, _ style: String) {
    let (at, height) = (horizontal(point.x), vertical(point.y))
    add(
      "<circle class=\"\(style)\" cx=\"\(Self.text(at))\" cy=\"\(Self.text(height))\" r=\"4.5\"/>"
    )
  }

  /// A line of text between the title and the chart.
  mutating func subtitle(_ text: String) { label(text, left, top - 15, anchor: "start") }

  // MARK: - Elements

  private mutating func line(
    _ style: String,
    _ x1: Double,
    _ y1: Double,
    _ x2: Double,
    _ y2: Double
  ) {
    add(
      "<line class=\"\(style)\" x1=\"\(Self.text(x1))\" y1=\"\(Self.text(y1))\""
        + " x2=\"\(Self.text(x2))\" y2=\"\(Self.text(y2))\"/>"
    )
  }

  private mutating func label(
    _ content: String,
    _ x: Double,
    _ y: Double,
    anchor: String,
    _ style: String = "small"
  ) {
    add(
      "<text class=\"\(style)\" text-anchor=\"\(anchor)\" x=\"\(Self.text(x))\""
        + " y=\"\(Self.text(y))\">\(content)</text>"
    )
  }

  private mutating func add(_ element: String) { text += element + "\n" }

  private func coordinates(_ points: [Point]) -> String {
    points.map { "\(Self.text(horizontal($0.x))),\(Self.text(vertical($0.y)))" }
      .joined(separator: " ")
  }

  private func horizontal(_ value: Double) -> Double { left + width * x.share(of: value) }
  private func vertical(_ value: Double) -> Double { top + height * (1 - y.share(of: value)) }

  /// A number with one decimal at most.
  static func text(_ number: Double) -> String {
    let rounded = (number * 10).rounded() / 10
    return rounded == rounded.rounded() ? "\(Int(rounded))" : "\(rounded)"
  }
}

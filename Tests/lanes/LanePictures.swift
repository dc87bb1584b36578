// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import MeshSimulation

/// The pictures of docs/lanes.md: how fixed rates compare with `auto`, and how a window moves.
enum LanePictures {
  private static let lamps = 80
  private static let width = 900.0
  private static let margin = 52.0
  private static let gap = 58.0

  /// Writes `docs/lanes-rates.svg` and `docs/lanes-window.svg`, below the working directory.
  static func write(scenes: Int) {
    save("docs/lanes-rates.svg", rates(scenes: scenes))
    save("docs/lanes-window.svg", windows())
  }

  private static func save(_ path: String, _ text: String) {
    guard let file = unsafe fopen(path, "w") else {
      return print("lanes: \(path) cannot be written; run it in the project's folder")
    }
    unsafe fputs(text, file)
    unsafe fclose(file)
    print("written: \(path)")
  }

  // MARK: - Rates

  private static func rates(scenes: Int) -> String {
    let charts = MeshParameters.all.enumerated().map { place, mesh in
      rates(Contest(mesh, lamps: lamps, scenes: scenes), place)
    }
    let legend = [
      ("rate", "a fixed rate, nothing dropped"), ("bad", "a fixed rate, commands dropped or lost"),
      ("auto", "window: auto"),
    ]
    return picture(
      "Time until a scene of \(lamps) lamps has settled, by the rate of the lane",
      charts,
      legend,
      height: 318
    )
  }

  private static func rates(_ contest: Contest, _ place: Int) -> SVGChart {
    var chart = chart(
      contest.mesh.name,
      place,
      x: .init(
        range: 4...250,
        ticks: [4, 10, 25, 60, 250],
        label: "commands a second",
        isLogarithmic: true
      ),
      y: .init(range: 0...16, ticks: [0, 4, 8, 12, 16], label: place == 0 ? "seconds" : "")
    )
    let sweep = Contest.rates.reversed().filter { $0 >= 4 }.map { rate in
      (rate: rate, result: contest.play(LaneLimits(rate: rate, burst: 1)))
    }.filter { $0.result.time < 16_000 }
    for (one, next) in zip(sweep, sweep.dropFirst()) {
      let isGood = [one, next].allSatisfy { $0.result.dropped + $0.result.lost == 0 }
      let points = [one, next].map { SVGChart.Point(x: $0.rate, y: $0.result.time / 1000) }
      chart.line(points, isGood ? "rate" : "bad")
    }
    let auto = contest.play(LaneLimits(window: .auto)).time / 1000
    chart.line([.init(x: 4, y: auto), .init(x: 250, y: auto)], "auto")
    guard let rate = contest.bestRate() else { return chart }
    let best = contest.play(LaneLimits(rate: rate, burst: 1)).time / 1000
    chart.dot(.init(x: rate, y: best), "best")
    chart.subtitle("best rate \(Int(rate))/s: \(seconds(best)); auto: \(seconds(auto))")
    return chart
  }

  // MARK: - Windows

  private static func windows() -> String {
    let charts = MeshParameters.all.enumerated().map(window)
    let legend = [("auto", "window: auto"), ("flight", "commands in flight")]
    return picture(
      "The window of a lane during one scene of \(lamps) lamps",
      charts,
      legend,
      height: 318
    )
  }

  private static func window(_ place: Int, _ mesh: MeshParameters) -> SVGChart {
    var scene = LampScene(mesh, lamps: lamps, limits: LaneLimits(window: .auto), seed: 1_000)
    scene.recordsWindow = true
    let end = scene.play().time / 1000
    let last = (end + 0.4).rounded(.up)
    let step = last > 4 ? 2.0 : 1.0
    var chart = chart(
      mesh.name,
      place,
      x: .init(
        range: 0...last,
        ticks: Array(stride(from: 0, through: last, by: step)),
        label: "seconds"
      ),
      y: .init(range: 0...16, ticks: [0, 4, 8, 12, 16], label: place == 0 ? "commands" : "")
    )
    chart.subtitle("settled in \(seconds(end)); starts at 4")
    chart.area(steps(scene.windows, until: end, \.inFlight), "flight")
    chart.line(steps(scene.windows, until: end, \.size), "auto")
    return chart
  }

  /// A line that stays level between samples.
  private static func steps(
    _ samples: [LampScene.WindowSample],
    until end: Double,
    _ value: KeyPath<LampScene.WindowSample, Int>
  ) -> [SVGChart.Point] {
    var points: [SVGChart.Point] = []
    for sample in samples {
      let at = sample.at / 1000
      if let before = points.last { points.append(.init(x: at, y: before.y)) }
      points.append(.init(x: at, y: Double(sample[keyPath: value])))
    }
    if let before = points.last { points.append(.init(x: end, y: before.y)) }
    return points
  }

  // MARK: - The whole

  private static func chart(
    _ name: String,
    _ place: Int,
    x: SVGChart.Axis,
    y: SVGChart.Axis
  ) -> SVGChart {
    let room = (width - margin - 24 - 2 * gap) / 3
    return SVGChart(
      title: "\(name) mesh",
      left: margin + Double(place) * (room + gap),
      top: 118,
      width: room,
      height: 150,
      x: x,
      y: y
    )
  }

  private static func picture(
    _ title: String,
    _ charts: [SVGChart],
    _ legend: [(style: String, text: String)],
    height: Int
  ) -> String {
    var rows = ""
    var left = 16.0
    for entry in legend {
      let (from, to) = (SVGChart.text(left), SVGChart.text(left + 26))
      rows +=
        "<line class=\"\(entry.style) key\" x1=\"\(from)\" y1=\"48\" x2=\"\(to)\" y2=\"48\"/>\n"
      rows +=
        "<text class=\"small\" x=\"\(SVGChart.text(left + 32))\" y=\"52\">\(entry.text)</text>\n"
      left += 56 + 6.3 * Double(entry.text.count)
    }
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Int(width)) \(height)" role="img">
      <title>\(title)</title>
      <!-- Written by make lanes ARGS=plot. -->
      \(style)
      <rect class="paper" width="100%" height="100%" rx="8"/>
      <text class="title" x="16" y="26">\(title)</text>
      \(rows)\(charts.map(\.text).joined())</svg>

      """
  }

  private static let style = """
    <style>
    svg { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
    .paper { fill: #fff; }
    .title { font-size: 14px; font-weight: 600; fill: #1b2023; }
    .small { fill: #566066; }
    .grid { stroke: #e3e5e2; }
    .base { stroke: #9aa3a6; }
    polyline, .key { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
    .rate { stroke: #2b6cb0; }
    .bad { stroke: #c0492f; stroke-dasharray: 1 4; }
    .auto { stroke: #0a8a66; }
    .best { fill: #2b6cb0; stroke: #fff; stroke-width: 1.5; }
    .flight { fill: #cfe3dc; }
    .flight.key { stroke: #cfe3dc; stroke-width: 8; stroke-linecap: butt; }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #14181a; }
      .title { fill: #e6eaeb; }
      .small { fill: #a3adb1; }
      .grid { stroke: #2a3033; }
      .base { stroke: #6b7579; }
      .rate { stroke: #6fb1f0; }
      .bad { stroke: #f08a72; }
      .auto { stroke: #3fc79f; }
      .best { fill: #6fb1f0; stroke: #14181a; }
      .flight { fill: #23443a; }
      .flight.key { stroke: #23443a; }
    }
    </style>
    """

  private static func seconds(_ seconds: Double) -> String {
    "\((seconds * 100).rounded() / 100) s"
  }
}

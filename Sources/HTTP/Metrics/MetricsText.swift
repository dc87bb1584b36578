// Settle
// SPDX-License-Identifier: Apache-2.0

/// Writes the Prometheus text format, version 0.0.4.
package struct MetricsText {
  package enum Kind: String { case counter, gauge, histogram }

  package static let mediaType = "text/plain; version=0.0.4; charset=utf-8"

  package private(set) var bytes: [UInt8] = []

  package init() {}

  /// Starts a family; its samples follow.
  package mutating func family(_ name: String, _ kind: Kind, _ help: String) {
    put("# HELP \(name) \(Self.escaped(help, quotes: false))\n# TYPE \(name) \(kind.rawValue)\n")
  }

  /// Adds a sample.
  package mutating func sample(
    _ name: String,
    _ labels: KeyValuePairs<String, String> = [:],
    _ value: Double
  ) {
    put(name)
    if !labels.isEmpty {
      put("{")
      for (position, label) in labels.enumerated() {
        if position > 0 { put(",") }
        put(label.key)
        put("=\"")
        put(Self.escaped(label.value, quotes: true))
        put("\"")
      }
      put("}")
    }
    put(" ")
    put(Self.text(value))
    put("\n")
  }

  package mutating func sample(
    _ name: String,
    _ labels: KeyValuePairs<String, String> = [:],
    _ value: UInt64
  ) {
    sample(name, labels, Double(value))
  }

  /// Adds the samples of a histogram: the cumulative count of each ascending bound, and the total.
  package mutating func histogram(
    _ name: String,
    bounds: [Double],
    counts: [UInt64],
    sum: Double
  ) {
    var total: UInt64 = 0
    for (bound, count) in zip(bounds, counts) {
      total += count
      sample(name + "_bucket", ["le": Self.text(bound)], total)
    }
    for count in counts.dropFirst(bounds.count) { total += count }
    sample(name + "_bucket", ["le": "+Inf"], total)
    sample(name + "_sum", [:], sum)
    sample(name + "_count", [:], total)
  }

  private mutating func put(_ text: String) { bytes.append(contentsOf: text.utf8) }

  private static func text(_ value: Double) -> String {
    if value == value.rounded(), value.magnitude < 0x1p53 { return String(Int64(value)) }
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
    return value.description
  }

  private static func escaped(_ text: String, quotes: Bool) -> String {
    guard text.utf8.contains(where: { $0 == 0x5C || $0 == 0x0A || $0 == 0x22 }) else { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\"" where quotes: result += "\\\""
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

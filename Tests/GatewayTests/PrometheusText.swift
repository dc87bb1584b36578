// Settle
// SPDX-License-Identifier: Apache-2.0

/// A strict parser of Prometheus' text format, written from its specification.
enum PrometheusText {
  struct Family {
    var help: String?
    var kind: String?
    /// By name and labels as written.
    var samples: [String: Double] = [:]
  }

  struct Mistake: Error, CustomStringConvertible {
    let description: String
  }

  /// Reads a whole exposition; every family needs help and type before its samples, once each.
  static func parse(_ text: String) throws -> [String: Family] {
    guard text.hasSuffix("\n") else { throw Mistake(description: "no line end at the end") }
    var families: [String: Family] = [:]
    var current = ""
    var buckets: [String: [(bound: Double, count: Double)]] = [:]
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 3).map { String($0) }
      if words[0] == "#" {
        guard words.count == 4 else { throw Mistake(description: "half a comment: \(line)") }
        let name = words[2]
        guard isName(name) else { throw Mistake(description: "no name: \(line)") }
        switch words[1] {
        case "HELP":
          guard families[name] == nil else { throw Mistake(description: "twice: \(line)") }
          families[name] = Family(help: words[3])
          current = name
        case "TYPE":
          guard current == name, families[name]?.kind == nil,
            ["counter", "gauge", "histogram"].contains(words[3])
          else { throw Mistake(description: "out of place: \(line)") }
          families[name]?.kind = words[3]
        default: throw Mistake(description: "unknown comment: \(line)")
        }
        continue
      }
      guard let space = line.lastIndex(of: " "),
        let value = number(line[line.index(after: space)...])
      else { throw Mistake(description: "no sample: \(line)") }
      let series = String(line[..<space])
      let name = String(series.prefix { $0 != "{" })
      try checkLabels(series.dropFirst(name.count), line)
      guard let family = families[current], let kind = family.kind, isName(name),
        name == current || (kind == "histogram" && suffixes.contains { name == current + $0 })
      else { throw Mistake(description: "belongs to no family: \(line)") }
      guard family.samples[series] == nil else { throw Mistake(description: "twice: \(line)") }
      if kind != "gauge", value < 0 { throw Mistake(description: "negative: \(line)") }
      families[current]?.samples[series] = value
      if name.hasSuffix("_bucket"), let bound = bound(of: series) {
        buckets[current, default: []].append((bound, value))
      }
    }
    for (name, buckets) in buckets {
      for (lower, upper) in zip(buckets, buckets.dropFirst()) {
        guard lower.bound < upper.bound, lower.count <= upper.count else {
          throw Mistake(description: "the buckets of \(name) do not ascend")
        }
      }
      guard buckets.last?.bound == .infinity,
        buckets.last?.count == families[name]?.samples[name + "_count"]
      else { throw Mistake(description: "the buckets of \(name) do not end with everything") }
    }
    return families
  }

  private static let suffixes = ["_bucket", "_sum", "_count"]

  private static func isName(_ name: String) -> Bool {
    guard let first = name.utf8.first, !(0x30...0x39).contains(first) else { return false }
    return name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        0x30...0x39, UInt8(ascii: "_"), UInt8(ascii: ":"):
        true
      default: false
      }
    }
  }

  private static func number(_ text: Substring) -> Double? {
    switch text {
    case "+Inf": .infinity
    case "-Inf": -.infinity
    case "NaN": .nan
    default: Double(text)
    }
  }

  /// `{name="value",…}`, quotes, backslashes and line breaks escaped.
  private static func checkLabels(_ text: Substring, _ line: Substring) throws {
    guard !text.isEmpty else { return }
    var rest = text.dropFirst()
    guard text.first == "{", text.last == "}" else { throw Mistake(description: "labels: \(line)") }
    while rest != "}" {
      let name = rest.prefix { $0 != "=" }
      rest = rest.dropFirst(name.count + 1)
      guard isName(String(name)), rest.popFirst() == "\"" else {
        throw Mistake(description: "labels: \(line)")
      }
      while let character = rest.popFirst(), character != "\"" {
        guard character == "\\" else { continue }
        guard let escaped = rest.popFirst(), "\\\"n".contains(escaped) else {
          throw Mistake(description: "escape: \(line)")
        }
      }
      if rest.first == "," {
        rest = rest.dropFirst()
      } else if rest != "}" {
        throw Mistake(description: "labels: \(line)")
      }
    }
  }

  private static func bound(of series: String) -> Double? {
    guard let start = series.firstRange(of: "le=\"")?.upperBound else { return nil }
    return number(series[start...].prefix { $0 != "\"" })
  }
}

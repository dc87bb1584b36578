// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut
internal import Values

/// The fields of a policy that one place in the files sets; the others are inherited.
package struct PolicyFields: Hashable, Sendable {
  /// A stated `max_wait`: a duration, or none.
  package enum MaxWait: Hashable, Sendable {
    case none
    case after(Duration)
  }

  package var delay: Duration?
  package var maxWait: MaxWait?
  package var leading: Bool?
  package var minInterval: Duration?

  /// These fields, with those of `weaker` where they are not set.
  package func over(_ weaker: PolicyFields) -> PolicyFields {
    PolicyFields(
      delay: delay ?? weaker.delay,
      maxWait: maxWait ?? weaker.maxWait,
      leading: leading ?? weaker.leading,
      minInterval: minInterval ?? weaker.minInterval
    )
  }

  /// `weaker` with these fields replaced.
  package func applied(to weaker: Policy) -> Policy {
    let fields = over(PolicyFields(weaker))
    var limit: Duration?
    if case .after(let duration)? = fields.maxWait { limit = duration }
    return Policy(
      delay: fields.delay ?? weaker.delay,
      maxWait: limit,
      leading: fields.leading ?? weaker.leading,
      minInterval: fields.minInterval ?? weaker.minInterval
    )
  }
}

extension PolicyFields {
  /// All fields of a policy.
  init(_ policy: Policy) {
    self.init(
      delay: policy.delay,
      maxWait: policy.maxWait.map { .after($0) } ?? MaxWait.none,
      leading: policy.leading,
      minInterval: policy.minInterval
    )
  }

  /// Reads `live` or a mapping of fields.
  init?(_ node: YAMLNode, _ problems: Problems) {
    if node.text == "live" {
      self.init(.live)
      return
    }
    if node.pairs == nil {
      problems.add(
        node,
        "policy",
        expected: "'live' or a mapping with " + Section.list(KeyTable.policyFields.keys),
        suggestion: node.text.flatMap { Suggestion.nearest(to: $0, in: ["live"]) }
      )
      return nil
    }
    guard let section = Section(node, .policyFields, problems) else { return nil }
    self.init(
      delay: section.duration("delay"),
      leading: section.flag("leading"),
      minInterval: section.duration("min_interval")
    )
    if let limit = section["max_wait"] {
      if limit.text == "none" {
        maxWait = MaxWait.none
      } else if let text = limit.text, let duration = DurationText.parse(text) {
        maxWait = .after(duration)
      } else {
        problems.add(
          limit,
          "max_wait",
          expected: "none or \(DurationText.forms)",
          suggestion: limit.text.flatMap {
            Suggestion.nearest(to: $0, in: ["none"])
              ?? Section.durationSuggestion(for: $0, "max_wait")
          }
        )
      }
    }
  }
}

/// Rates as text: `10/s`, `30/m`, `5/h`.
package enum RateText {
  /// The accepted forms, for error messages.
  package static let forms = "a rate such as 10/s or 30/m"

  /// Reads a rate per second; `nil` for a malformed text, zero, or more than 100,000 a second.
  package static func parse(_ text: String) -> Double? {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let amount = NumberText.parse(parts[0]), amount > 0 else { return nil }
    let seconds: Double
    switch parts[1] {
    case "s": seconds = 1
    case "m": seconds = 60
    case "h": seconds = 3600
    default: return nil
    }
    return amount / seconds <= 100_000 ? amount / seconds : nil
  }

  /// The rate that a malformed text most likely means.
  package static func suggestion(for text: String) -> String? {
    let compact = text.lowercased().filter { $0 != " " }
    let number = compact.prefix { $0.isNumber || $0 == "." }
    guard let amount = NumberText.parse(number), amount > 0 else { return nil }
    let unit = compact[number.endIndex...].drop { $0 == "/" }
    switch unit {
    case "", "s", "sec", "second", "ps", "hz": return "\(number)/s"
    case "m", "min", "minute": return "\(number)/m"
    case "h", "hour": return "\(number)/h"
    default: return nil
    }
  }
}

/// The default policy of each property type: the settings' fields over built-in ones.
package struct PolicyTable: Hashable, Sendable {
  /// The fields in the settings, by type name.
  package var stated: [String: PolicyFields] = [:]

  /// The policy of a type, which profile and property can override.
  package func policy(forType name: String) -> Policy {
    stated[name]?.applied(to: Self.builtIn(forType: name)) ?? Self.builtIn(forType: name)
  }

  /// The policy of a type without settings.
  package static func builtIn(forType name: String) -> Policy {
    switch name {
    case "number", "integer", "color":
      Policy(delay: .milliseconds(300), maxWait: .seconds(2))
    case "action": Policy(delay: .zero)
    default: Policy(delay: .milliseconds(20))
    }
  }
}

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

  package init(
    delay: Duration? = nil,
    maxWait: MaxWait? = nil,
    leading: Bool? = nil,
    minInterval: Duration? = nil
  ) {
    self.delay = delay
    self.maxWait = maxWait
    self.leading = leading
    self.minInterval = minInterval
  }

  /// All fields of a policy.
  package init(_ policy: Policy) {
    delay = policy.delay
    maxWait = policy.maxWait.map { .after($0) } ?? MaxWait.none
    leading = policy.leading
    minInterval = policy.minInterval
  }

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
  /// Reads `live` or a mapping of fields.
  init?(_ node: YAMLNode, _ problems: Problems) {
    if node.text == "live" {
      self.init(.live)
      return
    }
    if node.pairs == nil {
      problems.add(
        node.position,
        "policy: found \(node.kindDescription), expected 'live' or a mapping with "
          + Section.list(KeyTable.policyFields.keys),
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
        _ =
          section.reject(
            limit,
            "max_wait",
            expected: "none or \(DurationText.forms)",
            suggestion: limit.text.flatMap {
              Suggestion.nearest(to: $0, in: ["none"])
                ?? Section.durationSuggestion(for: $0, "max_wait")
            }
          ) as String?
      }
    }
  }
}

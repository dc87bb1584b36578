// Settle
// SPDX-License-Identifier: Apache-2.0

internal import LastOut
internal import Values

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

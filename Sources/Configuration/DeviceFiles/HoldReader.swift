// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import LastOut
internal import Values

/// Reads `hold:` and `hands:` of a property.
struct HoldReader {
  let section: Section
  let problems: Problems

  /// The rule; `nil` where the property has none, or `hold: none` removes the profile's.
  func rule(of property: String) -> HoldRule? {
    let hands = hands()
    guard let node = section["hold"], node.text != "none" else {
      warnAboutUnusedHands(of: property)
      return nil
    }
    guard let duration = section.duration("hold", atLeast: .milliseconds(1)) else { return nil }
    return HoldRule(duration: duration, hands: hands ?? HoldRule.standardHands)
  }

  private func hands() -> [String]? {
    guard let words = section.words("hands") else { return nil }
    guard let node = section["hands"], words.isEmpty, node.elements?.isEmpty == true else {
      return words.map(\.text)
    }
    return section.reject(
      node,
      "hands",
      expected: "sources of changes, such as [panel, cli]; without 'hands' they are "
        + Section.list(HoldRule.standardHands)
    )
  }

  private func warnAboutUnusedHands(of property: String) {
    guard let node = section["hands"], section["hold"] == nil, !section.hasMisspelled("hold") else {
      return
    }
    problems.warn(
      node.position,
      "hands: has no effect, because '\(Excerpt.of(property))' has no 'hold', such as hold: 15m"
    )
  }
}

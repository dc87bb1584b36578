// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import Values

/// Properties without `command`, which only the device changes.
extension PropertyReader {
  /// The keys that say how commands are made, sent or confirmed.
  private static let keysOfCommands = [
    "policy", "confirm", "ttl", "urgent", "ends", "excludes", "implies", "always", "hold", "hands",
  ]

  /// Whether a property has no command; an action always needs one.
  func isReadOnly(_ section: Section, type: String) -> Bool {
    guard type != "action" else { return false }
    guard let node = section["command"] else { return !section.hasMisspelled("command") }
    return node.text == "none"
  }

  /// Reports what a property without commands lacks, and keys that mean nothing without them.
  ///
  /// Where `command: none` removes the command of a profile, the profile's other keys stay unused.
  ///
  /// - Returns: Whether it is meant to be read-only, rather than its command forgotten.
  func checkReadOnly(_ section: Section, at pair: YAMLNode.Pair) -> Bool {
    let name = Excerpt.of(pair.key)
    let hasState = section["state"].map { $0.text != "none" } ?? section.hasMisspelled("state")
    let isStated = section["command"] != nil
    if !hasState {
      problems.add(
        pair.keyPosition,
        isStated
          ? "'\(name)' has no command, so it is read-only and needs 'state': where is it reported?"
          : "'command' is missing: where do values of this property go? A read-only one has 'state'"
      )
    }
    guard hasState, !isStated else { return isStated }
    for key in Self.keysOfCommands {
      guard let node = section[key] else { continue }
      problems.add(
        node.position,
        "'\(key)' is for properties with a 'command'; '\(name)' has none, which makes it read-only"
      )
    }
    return true
  }
}

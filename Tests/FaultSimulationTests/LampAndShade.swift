// Settle
// SPDX-License-Identifier: Apache-2.0

import FaultSimulation
import Values

/// A lamp with power, brightness, warmth and color, and a shade with position and command.
enum LampAndShade {
  static let (power, brightness, warmth, color, position, command) = (0, 1, 2, 3, 4, 5)
  static let on = Value.boolean(true)
  static let off = Value.boolean(false)

  static let facts: [HouseholdFacts] = {
    let power = HouseholdFacts(device: 0)
    var brightness = HouseholdFacts(device: 0)
    brightness.implies = 0
    var warmth = HouseholdFacts(device: 0)
    warmth.excludes = [3]
    let color = HouseholdFacts(device: 0)
    let position = HouseholdFacts(device: 1)
    var command = HouseholdFacts(device: 1)
    command.isAction = true
    command.urgent = [.text("STOP")]
    command.ended = [4]
    command.moves = [
      "STOP": .init(key: 4, want: .stopped), "OPEN": .init(key: 4, want: .value(.number(100))),
    ]
    return [power, brightness, warmth, color, position, command]
  }()
}

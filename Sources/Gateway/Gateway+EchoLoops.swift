// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut
import Operations

/// Changes by MQTT that come from what the gateway's own commands made a device report.
extension Gateway {
  /// Refuses `value` if it goes round in a loop; names both topics in the log when that is found.
  func breakEchoLoop(
    _ key: KeyIndex,
    _ value: Value,
    by topic: Span<UInt8>,
    at now: Moment
  ) throws(ValidationError) {
    guard echoLoops.hasReports else { return }
    guard case .loop(let source, let isNew) = echoLoops.asked(key, value, at: now) else { return }
    let entry = registry.properties[Int(key.rawValue)]
    let commands = Text.of(topic)
    let states = entry.property.states[source].topic
    let values = [machine.status(key).target, value].compactMap { $0?.bareText }
    if isNew {
      log.warning(
        "Echo loop stopped: what the state topic reports comes back on the command topic",
        [
          "key": entry.key, "commands": commands, "states": states,
          "values": values.map { Excerpt.of($0) }.joined(separator: " and "),
        ]
      )
    }
    throw .echoLoop(commands: commands, states: states, values: values)
  }

  /// The same for a toggle, which asks for the opposite of what is known.
  func breakEchoLoop(
    toggling key: KeyIndex,
    by topic: Span<UInt8>,
    at now: Moment
  ) throws(ValidationError) {
    guard let base = machine.base(of: key) else { return }
    try breakEchoLoop(key, try registry[key].property.toggled(from: base), by: topic, at: now)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import GatewayCore
import JSON
import LastOut
import LastOutTesting
import Values

/// The gateway's own retained topics at the broker.
extension SimulatedLife {
  /// Performs the publication of a retained topic.
  ///
  /// - Returns: Whether the client accepted the message; if not, it has no room for others either.
  func publishState(_ item: StatePublisher.Item, _ payload: [UInt8], _ place: Int32)
    -> Bool
  {
    guard isFaultFree || !random.chance(probabilities.missedTurn / 10) else {
      if isTraced { log("\(item) finds no room") }
      core.statePutBack(place)
      return false
    }
    guard model.isConnected else {
      fail("\(item) is published without a broker")
      return false
    }
    seen[.states] += 1
    if isTraced { log("shows: \(item) \(String(decoding: payload, as: UTF8.self))") }
    if payload.isEmpty {
      seen[.clearedStates] += 1
      if retained.isKept(item) { seen[.clearedAfterReconnect] += 1 }
    }
    let wrong = retained.published(
      item,
      Self.withoutAges(String(decoding: payload, as: UTF8.self)),
      isReceived: !world.isHalfOpen,
      isThrottled: !core.isShuttingDown,
      at: now
    )
    if let wrong { fail(wrong) }
    return true
  }

  /// Checks that every retained topic shows what the model expects, or did so a moment ago.
  func checkStates() {
    guard breach == nil, model.isConnected else { return }
    if let wrong = retained.stale(model.retainedTopics, at: now) { fail(wrong) }
  }

  /// The text with every age replaced by 0: ages change all the time.
  private static func withoutAges(_ text: String) -> String {
    let mark = "\"age_ms\":"
    var parts = text.split(separator: mark, omittingEmptySubsequences: false)[...]
    var result = String(parts.removeFirst())
    for part in parts { result += mark + "0" + part.drop { $0 != "}" && $0 != "," } }
    return result
  }
}

extension Model {
  /// What the gateway's own retained topics should show, with every age 0.
  var retainedTopics: [RetainedTopics.Expectation] {
    var found: [RetainedTopics.Expectation] = []
    for place in places {
      let target = keys[place].target
      found.append(
        .init(
          item: .target(KeyIndex(Int32(place))),
          text: target?.bareText ?? "",
          isBlank: target == nil
        )
      )
    }
    for device in devices.indices {
      var targets: [String] = []
      var infos: [String] = []
      var isKnown = false
      for place in places where keys[place].device == device {
        let key = keys[place]
        let id = key.property.id
        if let target = key.target { targets.append("\"\(id)\":\(Self.text(target.json))") }
        infos.append(
          "\"\(id)\":{\"target\":\(Self.text(key.target?.json))"
            + ",\"actual\":\(Self.text(key.actual?.json))"
            + ",\"phase\":\(key.phase.map { "\"\($0.rawValue)\"" } ?? "null"),\"age_ms\":0"
            + (key.behind.isEmpty ? "}" : ",\"waiting\":\(key.behind.count + 1)}")
        )
        isKnown = isKnown || key.target != nil || key.actual != nil || key.phase != nil
      }
      found.append(
        .init(
          item: .targets(device: device),
          text: "{\(targets.joined(separator: ","))}",
          isBlank: targets.isEmpty
        )
      )
      found.append(
        .init(
          item: .info(device: device),
          text: "{\(infos.joined(separator: ","))}",
          isBlank: !isKnown
        )
      )
    }
    return found
  }

  private static func text(_ value: JSONValue?) -> String { JSONWriter.text(value ?? .null) }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
package import LastOut

/// A device of some convention: it hears, takes a moment, acts, and tells its state.
///
/// While something moves, the state is told every ``reportInterval``, and once more at the end.
package struct ConventionalDevice<Convention: WireConvention>: SimulatedDevice {
  /// From a command to its effect.
  package static var replyDelay: Duration { .milliseconds(20) }
  package static var reportInterval: Duration { .milliseconds(200) }

  package let convention: Convention
  package private(set) var memory: DeviceMemory
  package private(set) var tally = CommandTally()

  /// What has been heard and not yet acted upon, oldest first.
  private var heard: [(due: Moment, answer: DeviceAnswer)] = []
  /// When each part that moves tells its state next.
  private var nextReports: [String: Moment] = [:]

  /// - Parameters:
  ///   - convention: How it speaks.
  ///   - parts: What it has and how it starts, by the names that the convention gives to parts.
  package init(_ convention: Convention, parts: [String: [String: JSONValue]]) {
    self.convention = convention
    memory = DeviceMemory(parts)
  }

  package var subscriptions: [String] { convention.subscriptions }

  package var will: [DeviceMessage] { [convention.presence(false)] }

  package var nextWake: Moment? {
    [heard.first?.due, nextReports.values.min()].compactMap { $0 }.min()
  }

  package mutating func start(at now: Moment) -> [DeviceMessage] {
    convention.greeting + memory.partNames.flatMap { tell($0, at: now) }
  }

  package mutating func receive(
    topic: String,
    payload: [UInt8],
    at now: Moment
  ) -> [DeviceMessage] {
    let answer = convention.answer(topic: topic, payload: payload, memory: memory, at: now)
    guard let answer else { return [] }
    if answer.isRefusal { tally.refused += 1 }
    if answer.asked.isEmpty { tally.received += 1 }
    heard.append((now.advanced(by: Self.replyDelay), answer))
    return []
  }

  package mutating func wake(at now: Moment) -> [DeviceMessage] {
    var messages: [DeviceMessage] = []
    while let next = heard.first, next.due <= now {
      heard.removeFirst()
      for change in next.answer.changes { memory.apply(change, at: now) }
      messages += next.answer.acknowledgement
      let parts = next.answer.changes.map(\.part) + next.answer.asked
      for part in parts.uniqued { messages += tell(part, at: now) }
    }
    let moving = nextReports.filter { $0.value <= now }.keys.sorted()
    for part in moving { messages += tell(part, at: now) }
    return messages
  }

  /// The state of a part; also decides when it is told next.
  private mutating func tell(_ part: String, at now: Moment) -> [DeviceMessage] {
    nextReports[part] = memory.nextEnd(part, at: now).map {
      min(now.advanced(by: Self.reportInterval), $0)
    }
    return convention.report(of: part, memory: memory, at: now)
  }
}

extension [String] {
  /// The elements in order, each once.
  fileprivate var uniqued: [String] {
    reduce(into: []) { found, element in
      if !found.contains(element) { found.append(element) }
    }
  }
}

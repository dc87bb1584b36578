// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
package import LastOut

/// A device of any convention, which executes commands after a delay and reports its state.
///
/// While something moves, it reports its state every ``reportInterval`` and once at the end.
package struct ConventionalDevice<Convention: WireConvention>: SimulatedDevice {
  /// The time from a command to its effect.
  package static var replyDelay: Duration { .milliseconds(20) }
  package static var reportInterval: Duration { .milliseconds(200) }

  package let convention: Convention
  package private(set) var memory: DeviceMemory
  package private(set) var tally = CommandTally()

  /// Answers that are not executed yet, oldest first.
  private var pending: [(due: Moment, answer: DeviceAnswer)] = []
  /// The time of the next report of each moving part.
  private var nextReports: [String: Moment] = [:]

  /// - Parameters:
  ///   - convention: The convention of its messages.
  ///   - parts: The initial values of its parts, by the convention's names for parts.
  package init(_ convention: Convention, parts: [String: [String: JSONValue]]) {
    self.convention = convention
    memory = DeviceMemory(parts)
  }

  package var subscriptions: [String] { convention.subscriptions }

  package var will: [DeviceMessage] { [convention.availability(false)].compactMap(\.self) }

  package var nextWake: Moment? {
    [pending.first?.due, nextReports.values.min()].compactMap { $0 }.min()
  }

  package mutating func start(at now: Moment) -> [DeviceMessage] {
    convention.greeting + memory.partNames.flatMap { report($0, at: now) }
  }

  package mutating func receive(
    topic: String,
    payload: [UInt8],
    at now: Moment
  ) -> [DeviceMessage] {
    let answer = convention.answer(topic: topic, payload: payload, memory: memory, at: now)
    guard let answer else { return [] }
    if answer.isRefusal { tally.refused += 1 }
    if answer.queriedParts.isEmpty { tally.received += 1 }
    pending.append((now.advanced(by: Self.replyDelay), answer))
    return []
  }

  package mutating func wake(at now: Moment) -> [DeviceMessage] {
    var messages: [DeviceMessage] = []
    while let next = pending.first, next.due <= now {
      pending.removeFirst()
      for change in next.answer.changes { memory.apply(change, at: now) }
      messages += next.answer.acknowledgement
      let parts = next.answer.changes.map(\.part) + next.answer.queriedParts
      for part in parts.uniqued { messages += report(part, at: now) }
    }
    let moving = nextReports.filter { $0.value <= now }.keys.sorted()
    for part in moving { messages += report(part, at: now) }
    return messages
  }

  /// Creates the state messages of a part and schedules the next ones.
  private mutating func report(_ part: String, at now: Moment) -> [DeviceMessage] {
    nextReports[part] = memory.nextEnd(part, at: now).map {
      min(now.advanced(by: Self.reportInterval), $0)
    }
    return convention.report(of: part, memory: memory, at: now)
  }
}

extension [String] {
  /// The elements in order, without duplicates.
  fileprivate var uniqued: [String] {
    reduce(into: []) { found, element in
      if !found.contains(element) { found.append(element) }
    }
  }
}

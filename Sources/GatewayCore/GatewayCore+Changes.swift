// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
import Devices
import JSON
package import LastOut
import Routing
package import Values

/// Changes from every surface.
extension GatewayCore {
  /// Accepts a change, after everything that is due has left.
  ///
  /// `delay` is the quiet period of a value in place of its policy's.
  ///
  /// - Throws: Why it is rejected; nothing has changed then.
  package mutating func change(
    _ change: ValueChange,
    of key: KeyIndex,
    at now: Moment,
    delay: Duration? = nil,
    _ options: ChangeOptions = ChangeOptions()
  ) throws(ValidationError) {
    pipeline.commands.advance(to: now)
    if pipeline.commands.isGroup(key) {
      return try groups.change(
        change,
        of: key,
        at: now,
        delay: delay,
        options,
        apartFrom: elsewhere,
        in: &pipeline,
        &outbox
      )
    }
    try pipeline.change(change, of: key, delay: delay, options, &outbox, at: now)
  }

  /// Accepts a change that arrived as a message; it waits longer if it is part of a feedback loop: a
  /// bridge that turns what the device reports back into commands.
  ///
  /// `topic` is the command topic, as the log names it.
  ///
  /// - Throws: Why it is rejected; nothing has changed then.
  package mutating func change(
    _ change: ValueChange,
    of key: KeyIndex,
    receivedOn topic: @autoclosure () -> String,
    at now: Moment,
    _ options: ChangeOptions = ChangeOptions()
  ) throws(ValidationError) {
    let wait = try slowing(change, of: key, receivedOn: topic(), at: now)
    try self.change(change, of: key, at: now, delay: wait, wait == nil ? options : options.slowed)
  }

  /// Accepts several values of one device at one instant, all of them or none.
  ///
  /// `topic` is the topic they were received on; it is checked for feedback loops.
  ///
  /// - Throws: Why they are rejected; nothing has changed then.
  package mutating func change(
    _ values: [(key: KeyIndex, value: Value)],
    receivedOn topic: @autoclosure () -> String,
    at now: Moment,
    _ options: ChangeOptions
  ) throws(ValidationError) {
    pipeline.commands.advance(to: now)  // What is due makes room.
    let ordered = try ordered(values, options, at: now)
    var waits: [KeyIndex: Duration] = [:]
    for (key, value) in ordered {
      waits[key] = try slowing(.set(value), of: key, receivedOn: topic(), at: now)
    }
    try accept(ordered, waits, at: now, options)
  }

  /// Accepts several values of one device at one instant, all of them or none.
  ///
  /// - Throws: Why they are rejected; nothing has changed then.
  package mutating func change(
    _ values: [(key: KeyIndex, value: Value)],
    at now: Moment,
    _ options: ChangeOptions
  ) throws(ValidationError) {
    pipeline.commands.advance(to: now)  // What is due makes room.
    let ordered = try ordered(values, options, at: now)
    try accept(ordered, [:], at: now, options)
  }

  /// The values in the order in which they are accepted.
  ///
  /// - Throws: Why they are rejected.
  private mutating func ordered(
    _ values: [(key: KeyIndex, value: Value)],
    _ options: ChangeOptions,
    at now: Moment
  ) throws(ValidationError) -> [(key: KeyIndex, value: Value)] {
    try pipeline.ordered(values, from: options.origin, apartFrom: elsewhere, at: now)
  }

  /// Accepts values that may be accepted; `waits` are the quiet periods of those that are slowed.
  private mutating func accept(
    _ values: [(key: KeyIndex, value: Value)],
    _ waits: [KeyIndex: Duration],
    at now: Moment,
    _ options: ChangeOptions
  ) throws(ValidationError) {
    let longest = options.quiet == .joint ? longestDelay(of: values.map(\.key)) : nil
    for (place, rides) in pipeline.commands.stating(values) {
      let (key, value) = values[place]
      var options = options
      options.rides = rides
      let delay = longest.flatMap {
        registry.definition(of: key).property.policy.delay < $0 ? $0 : nil
      }
      if let wait = waits[key] {
        try change(.set(value), of: key, at: now, delay: max(wait, delay ?? wait), options.slowed)
      } else {
        try change(.set(value), of: key, at: now, delay: delay, options.settling)
      }
    }
    skipQuiet(of: values, except: waits, at: now, options)
  }

  /// The longest quiet period of these keys, without momentary commands.
  private func longestDelay(of keys: [KeyIndex]) -> Duration {
    keys.map { key in
      let property = registry.definition(of: key).property
      return property.isAction ? .zero : property.policy.delay
    }.max() ?? .zero
  }

  /// Accepts values of several devices at one instant, each for itself.
  ///
  /// - Returns: For each value why it was rejected, or `nil`.
  package mutating func changeEach(
    _ values: [(key: KeyIndex, value: Value)],
    at now: Moment,
    _ options: ChangeOptions
  ) -> [ValidationError?] {
    var settling = options.settling
    var results: [ValidationError?] = Array(repeating: nil, count: values.count)
    for (place, rides) in pipeline.commands.stating(values) {
      settling.rides = rides
      do throws(ValidationError) {
        try change(.set(values[place].value), of: values[place].key, at: now, settling)
      } catch {
        results[place] = error
      }
    }
    skipQuiet(of: values, at: now, options)
    return results
  }

  /// Ends the quiet periods of several values if that is asked for, once all are accepted: one message
  /// may carry several of a device.
  ///
  /// Those of a feedback loop wait all the same.
  private mutating func skipQuiet(
    of values: [(key: KeyIndex, value: Value)],
    except slowed: [KeyIndex: Duration] = [:],
    at now: Moment,
    _ options: ChangeOptions
  ) {
    guard options.skipsQuiet else { return }
    for (key, _) in values where slowed[key] == nil {
      flush(key, at: now, source: options.origin?.source ?? "mqtt")
    }
  }

  /// Reports that a change was rejected before it reached a key's queue.
  ///
  /// - Returns: The number of the event.
  @discardableResult
  package mutating func reject(
    _ key: KeyIndex,
    reason: String,
    at now: Moment,
    origin: ChangeOrigin?
  ) -> UInt64 {
    pipeline.commands.dispatcher.log.reject(key, reason: reason, at: now, origin: origin)
  }

  /// A number for something that is rejected without concerning a known key.
  package mutating func nextNumber() -> UInt64 { pipeline.commands.dispatcher.log.nextNumber() }

  /// Ends the quiet period of `key` now; `false` when nothing was pending.
  @discardableResult
  package mutating func flush(_ key: KeyIndex, at now: Moment, source: String) -> Bool {
    perform(.flush, on: key, at: now, source: source)
  }

  /// Drops what waits for `key`; `false` when nothing did.
  @discardableResult
  package mutating func cancel(_ key: KeyIndex, at now: Moment, source: String) -> Bool {
    perform(.cancel, on: key, at: now, source: source)
  }

  /// Ends the wait of `key`, or of each member of a group; `false` when nothing waited.
  private mutating func perform(
    _ operation: RecordedChange.Operation,
    on key: KeyIndex,
    at now: Moment,
    source: String
  ) -> Bool {
    pipeline.commands.advance(to: now)
    guard pipeline.commands.isGroup(key) else {
      return pipeline.perform(operation, on: key, source: source, &outbox, at: now)
    }
    var isAny = false
    for member in registry.groups.members(of: key)
    where pipeline.perform(operation, on: member, source: source, &outbox, at: now) {
      isAny = true
    }
    return isAny
  }

  // MARK: - Feedback loops

  /// How long a change that arrived as a message waits if it is part of a loop.
  ///
  /// - Throws: When the property has no such change.
  private mutating func slowing(
    _ change: ValueChange,
    of key: KeyIndex,
    receivedOn topic: @autoclosure () -> String,
    at now: Moment
  ) throws(ValidationError) -> Duration? {
    let slowing = try loops.check(change, of: key, &pipeline.commands, receivedOn: topic(), at: now)
    outbox.log(slowing?.entry)
    return slowing?.wait
  }
}

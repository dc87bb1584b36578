// Settle
// SPDX-License-Identifier: Apache-2.0

package import Control
package import Devices
internal import JSON
package import LastOut
import Values

/// Plays timed changes through the queue on a virtual clock.
///
/// Pass the lines in file order to ``apply(_:)``, then call ``finish()``. ``runs`` can be read and
/// removed at any time. Lines with the same `at` form a batch: due timers run before it, values
/// with delay 0 at its end. Keys that are due at the same instant run in the order in which the
/// lines first named them. Memory grows with the number of keys, not with the number of lines.
package struct TimelineSimulator: ~Copyable {
  private struct KeyState {
    /// The position in the order in which keys were first named.
    var ordinal: Int?
    /// The value that ran last.
    var last: PlayedValue?
  }

  /// The maximum `at`, in milliseconds: about thirty years.
  private static let latest = 1e12

  /// The runs since the last ``removeRuns()``, in order.
  package private(set) var runs: [TimelineRun] = []

  private var core: LastOutCore<PlayedValue>
  private var names = KeyTable()
  private var states = KeyArray<KeyState>()
  /// The changed keys, in the order of their first change.
  private var named: [KeyIndex] = []
  /// The virtual time.
  private(set) var now = Moment.zero
  private let registry: Registry?

  /// Accepts any key and any JSON value; all keys have the same policy.
  package init(policy: Policy) {
    core = LastOutCore(policy: policy)
    registry = nil
  }

  /// Accepts only the keys of `registry`, with their types and policies.
  package init(registry: Registry) {
    core = LastOutCore(capacity: registry.properties.count)
    self.registry = registry
    states = KeyArray(repeating: KeyState(), count: registry.properties.count)
    for (position, entry) in registry.properties.enumerated() {
      core.setPolicy(entry.property.policy, for: KeyIndex(Int32(position)))
    }
  }

  /// Advances the clock to the line's time, then plays the line.
  ///
  /// - Throws: ``TimelineError`` if the line is invalid. The timeline continues without it.
  package mutating func apply(_ request: ControlRequest) throws(TimelineError) {
    if let at = request.at { try advance(toMilliseconds: at) }
    if request.isDryRun { throw .notPlayable("dry_run") }
    if registry != nil, let members = request.deviceMembers {
      return try change(members, ofDevice: request.key, flushing: request.now)
    }
    switch request.operation {
    case .set(let input):
      let key = try key(named: request.key)
      change(key, to: try payload(input, for: key), flushing: request.now)
    case .step(let amount):
      let key = try key(named: request.key)
      let number = try number(of: amount, for: key)
      change(key, to: try stepped(key, by: number), flushing: request.now)
    case .toggle:
      let key = try key(named: request.key)
      change(key, to: try toggled(key), flushing: request.now)
    case .flush:
      for key in try keys(matching: request.key) { flush(key) }
    case .cancel:
      for key in try keys(matching: request.key) { _ = core.cancel(key) }
    case .get: throw .notPlayable("get")
    case .pending: throw .notPlayable("pending")
    case .watch: throw .notPlayable("watch")
    case .describe: throw .notPlayable("describe")
    case .record: throw .notPlayable("record")
    case .reload: throw .notPlayable("reload")
    case .status: throw .notPlayable("status")
    case .log: throw .notPlayable("log")
    case .devices: throw .notPlayable("devices")
    case .scene: throw .notPlayable("scene")
    }
  }

  /// Advances the clock until nothing is pending.
  package mutating func finish() {
    runDue(through: Moment(nanoseconds: .max))
  }

  /// Removes the runs, but keeps their capacity.
  package mutating func removeRuns() {
    runs.removeAll(keepingCapacity: true)
  }

  // MARK: Time

  private mutating func advance(toMilliseconds at: Double) throws(TimelineError) {
    guard at >= 0, at <= Self.latest else { throw .timeOutOfRange(at) }
    let moment = Moment(nanoseconds: UInt64((at * 1_000_000).rounded()))
    guard moment >= now else {
      throw .timeRunsBackwards(found: at, after: Double(now.nanoseconds) / 1_000_000)
    }
    guard moment > now else { return }
    runDue(through: moment)
    now = moment
  }

  private mutating func runDue(through end: Moment) {
    while let deadline = core.nextDeadline, deadline <= end {
      now = max(now, deadline)
      runDueNow()
    }
  }

  /// Runs everything that is due at this instant, in the documented order.
  private mutating func runDueNow() {
    var due: [(key: KeyIndex, due: Moment, run: TimelineRun)] = []
    while let run = core.nextRun(at: now) {
      due.append((run.key, run.due, ended(run)))
    }
    if due.count > 1 {
      due.sort { (ordinal(of: $0.key), $0.due) < (ordinal(of: $1.key), $1.due) }
    }
    runs.append(contentsOf: due.lazy.map(\.run))
  }

  // MARK: Changes

  /// Sets several properties of a device at one instant, all of them or none.
  private mutating func change(
    _ members: [JSONValue.Member],
    ofDevice id: String,
    flushing: Bool
  ) throws(TimelineError) {
    var changes: [(key: KeyIndex, value: PlayedValue)] = []
    for member in members where !isOption(member.name, ofDevice: id) {
      let key = try key(named: "\(id)/\(member.name)")
      changes.append((key, try payload(member.value, for: key)))
    }
    for (key, value) in changes { change(key, to: value, flushing: false) }
    if flushing { for (key, _) in changes { flush(key) } }
  }

  /// Whether a member of a set accompanies commands, and is no property.
  private func isOption(_ name: String, ofDevice id: String) -> Bool {
    guard let registry, let device = try? registry.deviceIndex(of: id) else { return false }
    return registry.devices[device].options.contains(name)
  }

  /// The keys that a change is about, as the plot names them.
  func changedKeys(of request: ControlRequest) -> [String] {
    guard registry != nil, let members = request.deviceMembers else { return [request.key] }
    return members.filter { !isOption($0.name, ofDevice: request.key) }
      .map { "\(request.key)/\($0.name)" }
  }

  private mutating func change(_ key: KeyIndex, to payload: PlayedValue, flushing: Bool) {
    var flushing = flushing
    if case .typed(let value) = payload, let property = property(of: key) {
      if property.isAction { return press(key, value, property) }
      if property.urgent.contains(value) {
        endOverridden(by: property, at: key)
        flushing = true
      }
    }
    core.enqueue(payload, for: key, at: now)
    while let run = core.nextReady(at: now) { runs.append(ended(run)) }
    if flushing { flush(key) }
  }

  /// Runs an action, which neither waits nor replaces another.
  private mutating func press(_ key: KeyIndex, _ word: Value, _ property: Property) {
    if property.urgent.contains(word) { endOverridden(by: property, at: key) }
    states[key].last = .typed(word)
    runs.append(TimelineRun(at: now, key: name(of: key), value: word.json, collapsed: 0))
  }

  /// Cancels the pending values of an urgent value's key and of the keys that it ends.
  private mutating func endOverridden(by property: Property, at key: KeyIndex) {
    _ = core.cancel(key)
    guard let registry else { return }
    let device = registry[key].device
    for other in property.ends {
      guard let index = try? registry.index(of: other, inDevice: device) else { continue }
      _ = core.cancel(index)
    }
  }

  private mutating func flush(_ key: KeyIndex) {
    switch core.flush(key, at: now) {
    case .run(let run): runs.append(ended(run))
    case .markedDue, .nothing: break
    }
  }

  /// Finishes a run; on the virtual clock it takes no time.
  private mutating func ended(_ run: LastOutCore<PlayedValue>.Run) -> TimelineRun {
    core.finish(run.key, at: now)
    states[run.key].last = run.value
    return TimelineRun(
      at: now,
      key: name(of: run.key),
      value: run.value.json,
      collapsed: run.collapsed
    )
  }

  // MARK: Values

  private func payload(
    _ input: JSONValue,
    for key: KeyIndex
  ) throws(TimelineError) -> PlayedValue {
    guard let property = property(of: key) else { return .free(input) }
    do {
      return .typed(try property.value(from: input))
    } catch {
      throw .refused(error)
    }
  }

  /// The number that a step adds; a percentage needs a range, which only devices have.
  private func number(
    of amount: StepAmount,
    for key: KeyIndex
  ) throws(TimelineError) -> Double {
    if case .number(let number) = amount { return number }
    guard let property = property(of: key) else {
      throw .refused(.unsupported("a percentage is of a range: --devices names the devices"))
    }
    do {
      return try amount.number(for: property.kind)
    } catch {
      throw .refused(error)
    }
  }

  private func stepped(_ key: KeyIndex, by amount: Double) throws(TimelineError) -> PlayedValue {
    switch try base(of: key) {
    case .free(let value):
      guard let sum = value.stepped(by: amount) else {
        throw wrongBase(key, "step", expected: "a number", found: value)
      }
      return .free(sum)
    case .typed(let value):
      guard let property = property(of: key) else { return .typed(value) }
      do {
        return .typed(try property.stepped(from: value, by: amount))
      } catch {
        throw .refused(error)
      }
    }
  }

  private func toggled(_ key: KeyIndex) throws(TimelineError) -> PlayedValue {
    switch try base(of: key) {
    case .free(let value):
      guard let other = value.toggled else {
        throw wrongBase(key, "toggle", expected: "true, false, on or off", found: value)
      }
      return .free(other)
    case .typed(let value):
      guard let property = property(of: key) else { return .typed(value) }
      do {
        return .typed(try property.toggled(from: value))
      } catch {
        throw .refused(error)
      }
    }
  }

  /// The base of `step` and `toggle`: the pending value, otherwise the one that ran last.
  private func base(of key: KeyIndex) throws(TimelineError) -> PlayedValue {
    guard let base = core.pending(key)?.value ?? states[key].last else {
      throw .noBase(key: name(of: key))
    }
    return base
  }

  private func wrongBase(
    _ key: KeyIndex,
    _ operation: String,
    expected: String,
    found: JSONValue
  ) -> TimelineError {
    .wrongBase(
      key: name(of: key),
      operation: operation,
      expected: expected,
      found: Excerpt.of(found)
    )
  }

  // MARK: Keys

  /// The key that a change names; records the order of first naming.
  private mutating func key(named text: String) throws(TimelineError) -> KeyIndex {
    let index = try lookUp(text) ?? names.intern(text)
    states.extend(toInclude: index, with: KeyState())
    if states[index].ordinal == nil {
      states[index].ordinal = named.count
      named.append(index)
    }
    return index
  }

  /// The key called `text`; `nil` if any key is accepted and this one is new.
  private func lookUp(_ text: String) throws(TimelineError) -> KeyIndex? {
    guard let registry else { return names.find(text) }
    do {
      return try registry.index(of: text)
    } catch {
      throw .refused(registry.suggesting(error))
    }
  }

  /// The changed keys that match a pattern, in the order of first naming.
  private func keys(matching text: String) throws(TimelineError) -> [KeyIndex] {
    let pattern = Pattern(text)
    if pattern.isLiteral { return try lookUp(text).map { [$0] } ?? [] }
    return named.filter { pattern.matches(name(of: $0)) }
  }

  private func ordinal(of key: KeyIndex) -> Int {
    states[key].ordinal ?? .max
  }

  private func property(of key: KeyIndex) -> Property? {
    registry?[key].property
  }

  private func name(of key: KeyIndex) -> String {
    registry?[key].key ?? names.name(of: key)
  }
}

/// A value in a timeline's queue: any JSON, or a value of a property.
enum PlayedValue: Sendable {
  case free(JSONValue)
  case typed(Value)

  var json: JSONValue {
    switch self {
    case .free(let value): value
    case .typed(let value): value.json
    }
  }
}

extension JSONValue {
  /// The number plus `amount`; `nil` if this is not a number.
  ///
  /// Whole numbers stay whole. Sums are rounded to nine decimals, so that steps of a tenth show
  /// tenths.
  func stepped(by amount: Double) -> JSONValue? {
    switch self {
    case .integer(let number):
      if let whole = Int64(exactly: amount) {
        let (sum, overflow) = number.addingReportingOverflow(whole)
        if !overflow { return .integer(sum) }
      }
      return .number(Self.rounded(Double(number) + amount))
    case .number(let number): return .number(Self.rounded(number + amount))
    case .null, .boolean, .string, .array, .object: return nil
    }
  }

  /// The opposite of `true`, `false`, `on` or `off`, in the same case; `nil` for any other value.
  var toggled: JSONValue? {
    switch self {
    case .boolean(let flag): .boolean(!flag)
    case .string("on"): "off"
    case .string("off"): "on"
    case .string("ON"): "OFF"
    case .string("OFF"): "ON"
    case .null, .integer, .number, .string, .array, .object: nil
    }
  }

  private static func rounded(_ number: Double) -> Double {
    abs(number) < 1e6 ? (number * 1e9).rounded() / 1e9 : number
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import GatewayCore
import LastOut
import Values

/// What is checked when changes are accepted, and when all is quiet.
extension HouseholdLife {
  // MARK: - Relative changes

  /// Notes what a step or a toggle of a key may count from: the target that a person sees.
  func noteBases(of key: Int, _ change: ValueChange) {
    let property = registry.properties[key].property
    guard let want = base(of: key) else { return }
    let bases = want.isCertain ? [want.value] : [want.value, heard[key]].compactMap { $0 }
    let results: [Value] = bases.compactMap { base in
      switch (change, base) {
      case (.step(let amount), .number(let number)):
        let range = property.kind.numberRule?.range ?? 0...100
        return .number(min(max(number + amount, range.lowerBound), range.upperBound))
      case (.toggle, .boolean(let flag)): return .boolean(!flag)
      default: return nil
      }
    }
    guard !results.isEmpty else { return }
    if case .toggle = change, let command = expectation.command(of: key), command.key != key,
      expectation.isUnresolved(key)
    {
      seen[.impliesToggled] += 1
    }
    commands.bases = [Expectation.Command(key: key, intent: commands.intents): results]
  }

  /// The expected value of a key, and whether it certainly is its target.
  private func base(of key: Int) -> (value: Value, isCertain: Bool)? {
    guard case .value(let value) = expectation[key], !expectation.isPressed(key),
      !expectation.isTouched(key), !expectation.isExcused(key), !heardLate.contains(key)
    else { return nil }
    switch expectation.phase(of: key) {
    case .cancelled, .failed, .expired, .rejected, .superseded: return nil
    case .accepted, .sending, .sent, .confirmed, .unchanged, nil: break
    }
    return (value, !hasCrashed && (expectation.isUnresolved(key) || isTravelling(key)))
  }

  /// Whether the device has confirmed the last command and is still on its way to it.
  ///
  /// On the way that a press began it may pass the target without having heard of it, and reports
  /// from beyond are a change at the device.
  func isTravelling(_ key: Int) -> Bool {
    expectation.phase(of: key) == .confirmed && isMoving(key) && !isSlow(key) && !isPressed(key)
  }

  /// Whether it is on its way for so long that a gateway may take it for at rest.
  func isSlow(_ key: Int) -> Bool {
    let within = registry.properties[key].property.confirm?.within ?? Confirmation().within
    return isMoving(key) && confirmedAt[key].map { $0.duration(to: now) >= within } ?? true
  }

  func isMoving(_ key: Int) -> Bool {
    devices[facts[key].device].isMoving(registry.properties[key].property.id, at: now)
  }

  /// Whether a press moves it.
  func isPressed(_ key: Int) -> Bool {
    devices[facts[key].device].isPressed(registry.properties[key].property.id, at: now)
  }

  func checkBase(_ command: Expectation.Command, _ value: Value) {
    guard let bases = commands.bases.removeValue(forKey: command) else { return }
    guard !bases.contains(where: { facts[command.key].isSame($0, value) }) else { return }
    violated(
      .relativeBase,
      "\(name(command.key)) is asked for \(value.bareText), not for one of "
        + "\(bases.map(\.bareText))"
    )
  }

  // MARK: - Situations

  /// Counts the relations of a value that was accepted to what is undecided.
  func countRelations(of key: Int, _ value: Value) {
    if facts[key].isAction { seen[.presses] += 1 }
    let part = IntentOrder.Part(key: key, value: value, intent: commands.intents)
    let isWaiting = facts.indices.contains { other in
      guard facts[other].device == facts[key].device, expectation.isUnresolved(other),
        let command = expectation.command(of: other), command.key != key,
        let sent = commands.sending[command.key],
        broker.outstanding.contains(where: { $0.keys.contains(command.key) })
      else { return false }
      let older = IntentOrder.Part(key: command.key, value: sent.value, intent: sent.intent)
      return order.clause(older: older, newer: part) != nil
    }
    if isWaiting { seen[.orderWaits] += 1 }
    for other in facts.indices
    where facts[other].implies == key && expectation.isUnresolved(other) {
      guard case .value(let older) = expectation[other] else { continue }
      if facts[other].contradicts(older, key, value) { seen[.impliesOff] += 1 }
    }
    guard let implied = facts[key].implies else { return }
    if value == .number(0) { seen[.impliesZero] += 1 }
    if expectation.isUnresolved(implied), case .value(let older) = expectation[implied],
      facts[key].contradicts(value, implied, older)
    {
      seen[.impliesOn] += 1
    }
    if heard[key] == value, heard[implied] == .boolean(false) { seen[.impliesUnchanged] += 1 }
  }

  /// Counts the values that one request was accepted with.
  func countAccepted(_ parts: [(key: Int, value: Value)]) {
    for part in parts {
      if parts.contains(where: { $0.key == facts[part.key].implies }) { seen[.impliesStated] += 1 }
      if groupChanges.contains(facts[part.key].device), parts.count == 1 {
        seen[.memberChanges] += 1
      }
    }
  }

  // MARK: - At rest

  /// Checks that every device is as a person expects once all is quiet, and that the gateway knows
  /// it.
  func checkRest() {
    if core.hasUnsent || !core.areCommandsDrained {
      return fail(
        "something waits for ever: \(core.keysNotAcknowledged().map { name(Int($0.rawValue)) })"
      )
    }
    if !broker.outstanding.isEmpty { return fail("a message is never acknowledged") }
    checkRestored()
    for key in facts.indices where breach == nil { checkRest(key) }
    expectation.forgetCommands()
    order = IntentOrder(facts)
    swapped = nil
    commands.bases = [:]
    hasCrashed = false
    commands.replayed = []
    commands.impatient = []
  }

  private func checkRest(_ key: Int) {
    let device = registry.devices[facts[key].device]
    guard device.group == nil, !facts[key].isAction else { return }
    var state = devices[facts[key].device].value(registry.properties[key].property.id, at: now)
    // A lamp that is off is at the level 0.
    let isDark = isDark(key)
    if isDark, expectation[key] == .value(.number(0)) { state = .number(0) }
    let isStopped = devices[facts[key].device].isStopped
    judge(key, expectation.verdict(key, state: state, isStopped: isStopped), state)
    checkTarget(key, state)
    expectation.rested(key, at: isDark ? nil : state)
  }

  /// Whether an implied property is off.
  private func isDark(_ key: Int) -> Bool {
    guard let implied = facts[key].implies else { return false }
    let name = registry.properties[implied].property.id
    return devices[facts[key].device].value(name, at: now) == .boolean(false)
  }

  private func judge(_ key: Int, _ verdict: Expectation.Verdict, _ state: Value?) {
    let isNew =
      expectation.command(of: key).map { $0.intent > earlierIntents } ?? expectation.isTouched(key)
    var outcome = "\(verdict)"
    switch verdict {
    case .whyNot(let phase): outcome = phase.rawValue
    case .wrong(let why):
      outcome = "wrong"
      violated(clauseOfState(key), "\(name(key)) is \(state?.bareText ?? "unknown"): \(why)")
    case .inventedHand(let why):
      outcome = "wrong"
      violated(.inventedHand, "\(name(key)) is \(state?.bareText ?? "unknown"): \(why)")
    case .asIntended, .byHand, .free, .excused: break
    }
    guard isNew else { return }
    let property = registry.properties[key].property.id
    seen.record(
      outcome,
      of: "\(devices[facts[key].device].form) \(property)",
      isFaultless: traits.isFaultless
    )
  }

  private func clauseOfState(_ key: Int) -> Clause {
    let device = facts[key].device
    if groupChanges.contains(device) { return .stateOfMembers }
    return switch devices[device].form {
    case .lamp, .statefulLamp: .stateOfLamps
    case .shade: .stateOfCovers
    case .valve: .stateOfValves
    case .dimmer, .relay: .stateOfOthers
    }
  }

  /// The target of a key is what its device shows at last.
  private func checkTarget(_ key: Int, _ state: Value?) {
    guard let state, let heard = heard[key] else { return }
    // A lamp that is off may show any level, and its reports do not move the target.
    if isDark(key) || heardDark.contains(key) { return }
    let target = core.status(KeyIndex(Int32(key))).target
    if case .number(let number) = state, case .number(let end)? = expectationOfTravel(key),
      number != end
    {
      seen[.restedElsewhere] += 1
    }
    guard facts[key].isSame(heard, state) else {
      return violated(
        .targetAtRest,
        "\(name(key)) is \(state.bareText), and \(heard.bareText) was reported last"
      )
    }
    if target.map({ facts[key].isSame($0, state) }) ?? false { return }
    violated(
      .targetAtRest,
      "\(name(key)) is \(state.bareText), and its target is \(target?.bareText ?? "unknown")"
    )
  }

  private func expectationOfTravel(_ key: Int) -> Value? {
    if case .value(let value) = expectation[key] { value } else { nil }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import LastOutTesting
import Values

/// A rule outside the gateway: it turns what a device gets or reports into a change by MQTT of the
/// other one of two values.
struct OutsideRule {
  let key: KeyIndex
  let values: [Value]
  /// Whether it reads the commands, not the reports.
  let readsCommands: Bool
  /// How long it takes, in milliseconds.
  let delay: ClosedRange<Int>
  var random: SeededGenerator

  /// The rule of one in five lives; others have none, and the numbers of their seeds are those that
  /// they have without it.
  init?(_ registry: Registry, seed: UInt64) {
    guard seed % 5 == 2 else { return nil }
    var random = SeededGenerator(life: ~seed)
    let keys = registry.properties.indices.filter {
      registry.properties[$0].property.state != nil
        && registry.devices[registry.properties[$0].device].group == nil
    }
    let place = keys[random.below(keys.count)]
    key = KeyIndex(Int32(place))
    values =
      switch registry.properties[place].property.kind {
      case .boolean: [.boolean(false), .boolean(true)]
      case .choice(let words): [.text(words[0]), .text(words[1])]
      default: [.number(random.chance(30) ? 0 : 60), .number(80)]
      }
    readsCommands = random.chance(40)
    delay = [0...5, 0...300, 1000...5000][random.below(3)]
    self.random = random
  }

  func other(than value: Value) -> Value? {
    guard let place = values.firstIndex(of: value) else { return nil }
    return values[1 - place]
  }
}

extension SimulatedLife {
  /// Lets a rule live undisturbed in half of the lives that have one.
  static func calm(_ probabilities: inout Probabilities, _ rule: inout OutsideRule?) {
    guard rule?.random.chance(60) ?? false else { return }
    probabilities.refusal = 0
    probabilities.lostAnswer = 0
    probabilities.cut = 0
    probabilities.drop = 0
    probabilities.hand = 0
    probabilities.power = 0
    probabilities.pause = 0
    probabilities.restart = 0
    probabilities.shutdown = 0
    probabilities.crash = 0
    probabilities.missedTurn = 0
    probabilities.slowDevice = 0
    probabilities.time = 85
  }

  /// Lets the rule see a value of a key.
  func showRule(_ value: Value, of key: KeyIndex, isCommand: Bool) {
    guard !isFaultFree, key == rule?.key, isCommand == rule?.readsCommands,
      let other = rule?.other(than: value), let delay = rule?.delay
    else { return }
    let moment = now.advanced(by: .milliseconds(rule?.random.within(delay) ?? 0))
    agenda.plan(.rule(other), at: moment)
  }

  /// Asks for a value as a message on a command topic does.
  func askByMessage(_ value: Value) {
    guard let key = rule?.key, !isFaultFree else { return }
    var options = Model.Options(caller: 0, skipsQuiet: rule?.random.chance(20) ?? false)
    options.isMessage = true
    let isToggle = rule?.random.chance(30) ?? false
    let isOpposite = model.base(Int(key.rawValue)) == rule?.other(than: value)
    if case .boolean = value, isToggle, isOpposite { return ask(.toggle, of: key, options) }
    ask(.set(value), of: key, options)
  }

  /// Begins what the rule goes on with; `false` in a life without one, and most of the time.
  func beginRule() -> Bool {
    guard let values = rule?.values, rule?.random.chance(8) ?? false else { return false }
    askByMessage(values[rule?.random.below(2) ?? 0])
    return true
  }

  /// What the model expects of a message, and what is counted of it.
  func expectedWait(_ change: ValueChange, of key: KeyIndex) -> Duration? {
    guard let wait = model.wait(for: change, of: key, at: now) else { return nil }
    if seen[.slowedChanges] == 0 { seen[.loopLives] += 1 }
    seen[.slowedChanges] += 1
    return wait
  }
}

extension Model {
  /// The quiet period of a change by a message, if it is part of a loop; recorded as asked for.
  fileprivate mutating func wait(
    for change: ValueChange,
    of key: KeyIndex,
    at now: Moment
  ) -> Duration? {
    let place = Int(key.rawValue)
    let property = keys[place].property
    guard hasReports else { return nil }
    var asked: Value?
    if case .set(let value) = change { asked = value }
    if case .toggle = change, case .boolean(let flag)? = base(place) { asked = .boolean(!flag) }
    return asked.flatMap {
      keys[place].turns.wait(
        for: $0,
        isUrgent: property.urgent.contains($0),
        quiet: property.policy.delay,
        at: now
      )
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import GatewayCore
import JSON
import LastOut
import LastOutTesting
import Values

/// What people, automations and faults do in a chapter.
extension HouseholdLife {
  /// The pauses between two requests, in milliseconds: below and above quiet periods,
  /// acknowledgements and travels.
  private static let pauses = [0, 0, 5, 30, 120, 350, 700, 1500, 2500, 4000, 9000]

  /// Plans the requests and faults of a chapter.
  func planChapter() {
    earlierIntents = commands.intents
    groupChanges = []
    // Few devices at once, so that their changes meet.
    let focus = (0..<random.within(1...2)).map { _ in random.below(registry.devices.count) }
    var moment = now
    let count = random.within(2...9)
    for _ in 0..<count {
      let device = focus[random.below(focus.count)]
      if random.chance(12) {
        toggleFast(device, from: &moment)
      } else {
        for request in requests(on: device) {
          timeline.plan(.request(request), at: moment)
          moment = moment.advanced(by: pause)
        }
      }
      moment = moment.advanced(by: pause)
    }
    planFaults(focus, Int(now.duration(to: moment).wholeNanoseconds / 1_000_000) + 1)
  }

  private var pause: Duration {
    .milliseconds(Self.pauses[random.below(Self.pauses.count)])
  }

  private func planFaults(_ focus: [Int], _ length: Int) {
    let device = focus.flatMap { members(of: $0) }.first ?? focus[0]
    if random.chance(traits.hands), let key = anyKey(of: device, where: { !$0.isAction }) {
      // Often a lamp is turned off, while its level is asked for.
      let lamp = facts.indices.first { facts[$0].implies != nil && facts[$0].device == device }
      if let power = lamp.flatMap({ facts[$0].implies }), random.chance(60) {
        timeline.plan(.hand(key: power, .boolean(false)), at: after(0...length))
      } else {
        timeline.plan(.hand(key: key, anyValue(of: key)), at: after(0...length))
      }
    }
    if random.chance(traits.cuts) {
      timeline.plan(.cut(generation: broker.generation), at: after(0...length))
    }
    if random.chance(traits.reloads) {
      for _ in 0..<random.within(1...2) { timeline.plan(.reload, at: after(0...length)) }
    }
    if random.chance(traits.crashes) { timeline.plan(.crash, at: after(0...length)) }
    if random.chance(traits.powerLosses) {
      let loss = after(0...length)
      timeline.plan(.power(device: device, isOn: false), at: loss)
      let length = Duration.milliseconds(random.within(500...40_000))
      timeline.plan(.power(device: device, isOn: true), at: loss.advanced(by: length))
    }
  }

  // MARK: - Requests

  private func members(of device: Int) -> [Int] {
    guard let group = registry.devices[device].group else { return [device] }
    return registry.devices.indices.filter { group.members.contains(registry.devices[$0].id) }
  }

  func keys(of device: Int) -> [Int] { registry.indices(ofDevice: device).map { Int($0) } }

  private func anyKey(of device: Int, where isWanted: (HouseholdFacts) -> Bool = { _ in true })
    -> Int?
  {
    let found = keys(of: device).filter { isWanted(facts[$0]) }
    return found.isEmpty ? nil : found[random.below(found.count)]
  }

  private func anyValue(of key: Int) -> Value {
    let property = registry.properties[key].property
    switch property.kind {
    case .number(let rule), .integer(let rule):
      let range = rule.range ?? 0...100
      if range.lowerBound == 0, random.chance(12) { return .number(0) }
      let places = Int(range.upperBound - range.lowerBound) + 1
      return .number(range.lowerBound + Double(random.below(places)))
    case .boolean: return .boolean(random.chance(50))
    case .choice(let words), .action(let words): return .text(words[random.below(words.count)])
    case .text: return .text("text")
    case .color:
      func channel() -> UInt8 { UInt8(random.below(256)) }
      return .color(.rgb(red: channel(), green: channel(), blue: channel()))
    }
  }

  private func anyChange(of key: Int) -> HouseholdRequest {
    let isNow = random.chance(20)
    switch registry.properties[key].property.kind {
    case .number, .integer:
      if random.chance(25) {
        return .change(key: key, .step(Double(random.within(-20...20))), isNow: isNow)
      }
    case .boolean:
      if random.chance(30) { return .change(key: key, .toggle, isNow: isNow) }
    case .choice, .text, .color, .action: break
    }
    return .change(key: key, .set(anyValue(of: key)), isNow: isNow)
  }

  /// One request, or several that concern each other.
  private func requests(on device: Int) -> [HouseholdRequest] {
    let isGroup = registry.devices[device].group != nil
    switch random.below(20) {
    case 0: return anyKey(of: device).map { [.cancel(key: $0)] } ?? []
    case 1: return anyKey(of: device).map { [.flush(key: $0)] } ?? []
    case 2, 3: return merged(device)
    case 4: return scene(device)
    case 11: return changeAndCancel(device)
    case 5, 6, 7: return related(device)
    case 8..<11 where isGroup:
      // The group, and one of its members.
      let members = members(of: device)
      return change(device) + change(members[random.below(members.count)])
    default: return change(device)
    }
  }

  private func change(_ device: Int) -> [HouseholdRequest] {
    anyKey(of: device).map { [anyChange(of: $0)] } ?? []
  }

  /// A value, and another one that is cancelled.
  private func changeAndCancel(_ device: Int) -> [HouseholdRequest] {
    guard let key = anyKey(of: device, where: { !$0.isAction }) else { return change(device) }
    return [anyChange(of: key), anyChange(of: key), .cancel(key: key)]
  }

  private func merged(_ device: Int) -> [HouseholdRequest] {
    let values = keys(of: device).filter { !facts[$0].isAction && random.chance(60) }.map {
      (key: $0, value: anyValue(of: $0))
    }
    guard !values.isEmpty else { return change(device) }
    return [.merged(values, isNow: random.chance(30))]
  }

  private func scene(_ device: Int) -> [HouseholdRequest] {
    // One value for all members of a group may leave in one message.
    if let key = anyKey(of: device, where: { !$0.isAction }), members(ofKey: key).count > 1,
      random.chance(70)
    {
      let value = anyValue(of: key)
      return [.scene(members(ofKey: key).map { ($0, value) })]
    }
    var values: [(key: Int, value: Value)] = []
    for device in [device, random.below(registry.devices.count)] {
      for member in members(of: device) {
        guard let key = anyKey(of: member, where: { !$0.isAction }),
          !values.contains(where: { $0.key == key })
        else { continue }
        values.append((key, anyValue(of: key)))
      }
    }
    return [.scene(values)]
  }

  /// Two or three changes of which each ends or overwrites the one before.
  private func related(_ device: Int) -> [HouseholdRequest] {
    let device = members(of: device)[random.below(members(of: device).count)]
    guard let first = anyKey(of: device, where: { !$0.ended.isEmpty || $0.implies != nil })
    else { return change(device) + change(device) }
    var requests = [anyChange(of: first)]
    if let implied = facts[first].implies {
      requests.append(.change(key: implied, .set(.boolean(random.chance(30))), isNow: false))
    } else if let ended = facts[first].ended.first {
      requests.append(anyChange(of: ended))
    }
    if random.chance(40) { requests.append(requests[0]) }
    if random.chance(50) { requests.reverse() }
    return requests
  }

  /// A source that toggles, or turns between two values, at some speed.
  private func toggleFast(_ device: Int, from moment: inout Moment) {
    let device = members(of: device)[0]
    guard let key = anyKey(of: device, where: { !$0.isAction }) else { return }
    var values = [anyValue(of: key), anyValue(of: key)]
    if case .boolean = values[0] { values = [.boolean(true), .boolean(false)] }
    let gap = [40, 150, 400, 900, 2500][random.below(5)]
    let count = random.within(4...24)
    let isMessage = random.chance(60)
    if count > 8, isMessage, gap >= 150 { seen[.feedbackSlowed] += 1 }
    for place in 0..<count {
      let value = values[place % 2]
      let request: HouseholdRequest =
        isMessage ? .message(key: key, value) : .change(key: key, .set(value), isNow: false)
      timeline.plan(.request(request), at: moment)
      moment = moment.advanced(by: .milliseconds(gap))
    }
  }

  // MARK: - Asking

  func ask(_ request: HouseholdRequest) {
    wake()
    guard breach == nil else { return }
    if isTraced { log("asked: \(text(request)), change \(commands.intents + 1)") }
    switch request {
    case .cancel(let key):
      seen[.cancels] += 1
      if members(ofKey: key).contains(where: { isMoving($0) }) { seen[.cancelInTravel] += 1 }
      _ = core.cancel(KeyIndex(Int32(key)), at: now, source: "test")
      for member in members(ofKey: key) { noteCancel(member) }
      return collect()
    case .flush(let key):
      _ = core.flush(KeyIndex(Int32(key)), at: now, source: "test")
      return collect()
    case .change, .message, .merged, .scene: break
    }
    commands.intents += 1
    commands.accepted = []
    let origin = ChangeOrigin(id: .integer(Int64(commands.intents)), source: "test")
    do throws(ValidationError) {
      try accept(request, origin)
    } catch {
      refused(request, error)
    }
    collect()
    let parts = commands.accepted ?? []
    commands.accepted = nil
    countAccepted(parts)
    for part in parts { noteNewer(part.key, part.value) }
    expectation.asked(parts, by: commands.intents)
  }

  private func accept(_ request: HouseholdRequest, _ origin: ChangeOrigin) throws(ValidationError) {
    func indices(_ values: [(key: Int, value: Value)]) -> [(key: KeyIndex, value: Value)] {
      values.map { (KeyIndex(Int32($0.key)), $0.value) }
    }
    switch request {
    case .change(let key, let change, let isNow):
      noteBases(of: key, change)
      let options = ChangeOptions(origin: origin, skipsQuiet: isNow)
      groupChanged(key)
      try core.change(change, of: KeyIndex(Int32(key)), at: now, options)
    case .message(let key, let value):
      try core.change(
        .set(value),
        of: KeyIndex(Int32(key)),
        receivedOn: "settle/\(name(key))/set",
        at: now,
        ChangeOptions(origin: origin)
      )
    case .merged(let values, let isNow):
      seen[.mergedChanges] += 1
      for (key, _) in values { groupChanged(key) }
      let options = ChangeOptions(origin: origin, skipsQuiet: isNow, isJoint: true)
      try core.change(indices(values), at: now, options)
    case .scene(let values):
      seen[.scenes] += 1
      _ = core.changeEach(indices(values), at: now, ChangeOptions(origin: origin))
    case .cancel, .flush: break
    }
  }

  /// Notes the members of a group's key that is changed.
  private func groupChanged(_ key: Int) {
    let members = registry.groups.members(of: KeyIndex(Int32(key)))
    if !members.isEmpty { seen[.groupChanges] += 1 }
    for member in members {
      groupChanges.insert(facts[Int(member.rawValue)].device)
    }
  }

  private func members(ofKey key: Int) -> [Int] {
    let members = registry.groups.members(of: KeyIndex(Int32(key))).map { Int($0.rawValue) }
    return members.isEmpty ? [key] : members
  }

  /// A change may be refused only if nothing is known to count from.
  private func refused(_ request: HouseholdRequest, _ error: ValidationError) {
    if isTraced { log("refused: \(error)") }
    switch request {
    case .message(let key, _):
      violated(.feedback, "\(name(key)) was refused: \(error)")
    case .change(_, .step, _), .change(_, .toggle, _): break
    case .change(let key, .set, _): fail("\(name(key)) was refused: \(error)")
    case .merged, .scene: fail("a change of several values was refused: \(error)")
    case .cancel, .flush: break
    }
  }

  private func text(_ request: HouseholdRequest) -> String {
    func text(_ values: [(key: Int, value: Value)]) -> String {
      values.map { "\(name($0.key)) \($0.value.bareText)" }.joined(separator: ", ")
    }
    switch request {
    case .change(let key, let change, let isNow):
      return "\(name(key)) \(change)\(isNow ? " now" : "")"
    case .message(let key, let value): return "\(name(key)) \(value.bareText) by a message"
    case .merged(let values, let isNow): return "\(text(values)) together\(isNow ? " now" : "")"
    case .scene(let values): return "scene: \(text(values))"
    case .cancel(let key): return "cancel of \(name(key))"
    case .flush(let key): return "flush of \(name(key))"
    }
  }
}

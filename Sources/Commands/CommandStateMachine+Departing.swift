// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut

/// From the road to the broker: what leaves, alone or with others in one message.
extension CommandStateMachine {
  /// Makes the message for a key whose turn it is.
  mutating func depart(_ first: KeyIndex, at now: Moment) -> Publish {
    guard let keys = gatherMerge(with: first, at: now) else { return departAlone(first, at: now) }
    let values = keys.compactMap { takeReady($0) }
    lanes.left(device: facts[Int(first.rawValue)].device, at: now)
    // A repetition has the number of the first attempt: whichever reply comes speaks of the value.
    let number = settings.firstMessage &+ (values.first?.change.number ?? 0)
    let message = Int64(number & 0x7FFF_FFFF)
    let payload = payload(of: keys, values, message)
    var qos = 0
    var expiry = Moment(nanoseconds: .max)
    var isReplayed = false
    let transition = values.map { Self.transition(of: $0) }.max() ?? .zero
    for (key, ready) in zip(keys, values) {
      qos = max(qos, registry.properties[Int(key.rawValue)].property.command.qos)
      expiry = min(expiry, ready.change.expiresAt)
      isReplayed = isReplayed || ready.change.isReplayed
      leave(key, ready, message, transition: transition, at: now)
    }
    statistics.published += 1
    return Publish(
      token: flights.depart(keys),
      topic: registry[first].property.command.topic,
      payload: payload,
      qos: qos,
      timeLeft: Publish.timeLeft(from: now, until: expiry),
      keys: keys,
      isReplayed: isReplayed
    )
  }

  /// The same for one key alone, which is what most messages are for.
  private mutating func departAlone(_ key: KeyIndex, at now: Moment) -> Publish {
    guard let ready = takeReady(key) else {
      preconditionFailure("A key departs, but has nothing to send.")
    }
    lanes.left(device: facts[Int(key.rawValue)].device, at: now)
    let message = Int64((settings.firstMessage &+ ready.change.number) & 0x7FFF_FFFF)
    let entry = registry[key]
    var payload: [UInt8] = []
    if let options = ready.change.options, entry.property.command.payload.isObject {
      PayloadTemplate.render(
        merging: [(entry.property.command.payload, entry.wireValue(of: ready.change.value))],
        options: Self.newest(of: options),
        id: message,
        into: &payload
      )
    } else {
      entry.appendCommand(ready.change.value, id: message, to: &payload)
    }
    leave(key, ready, message, transition: Self.transition(of: ready), at: now)
    statistics.published += 1
    let keys = [key]
    return Publish(
      token: flights.depart(keys),
      topic: entry.property.command.topic,
      payload: payload,
      qos: entry.property.command.qos,
      timeLeft: Publish.timeLeft(from: now, until: ready.change.expiresAt),
      keys: keys,
      isReplayed: ready.change.isReplayed
    )
  }

  /// One payload for all of `keys`, options included where the payload is an object.
  private func payload(
    of keys: [KeyIndex],
    _ values: [ReadyValue],
    _ message: Int64
  ) -> [UInt8] {
    var parts: [(template: PayloadTemplate, wire: JSONValue)] = []
    var options: [JSONValue.Member] = []
    for (key, ready) in zip(keys, values) {
      let place = Int(key.rawValue)
      let template = registry.properties[place].property.command.payload
      let wire = registry.properties[place].wireValue(of: ready.change.value)
      parts.append((template, wire))
      if template.isObject { options += ready.change.options ?? [] }
    }
    options = Self.newest(of: options)
    var payload: [UInt8] = []
    PayloadTemplate.render(merging: parts, options: options, id: message, into: &payload)
    return payload
  }

  /// The last of those that share a name, in the order of the last ones.
  private static func newest(of options: [JSONValue.Member]) -> [JSONValue.Member] {
    var newest: [JSONValue.Member] = []
    for option in options {
      newest.removeAll { $0.name == option.name }
      newest.append(option)
    }
    return newest
  }

  /// What the longest `transition` option, in seconds, adds to the time a confirmation may take.
  private static func transition(of ready: ReadyValue) -> Duration {
    guard let options = ready.change.options else { return .zero }
    var longest = 0.0
    for option in options where option.name == "transition" {
      longest = max(longest, option.value.double ?? 0)
    }
    return .milliseconds(Int64(min(longest, 86_400) * 1000))
  }

  /// All pending properties of a merging device with the same command topic leave together; `nil`
  /// for a key that leaves alone.
  private mutating func gatherMerge(with first: KeyIndex, at now: Moment) -> [KeyIndex]? {
    guard facts[Int(first.rawValue)].canMerge else { return nil }
    let device = facts[Int(first.rawValue)].device
    let lead = registry[first].property.command
    var keys: [KeyIndex] = []
    for raw in registry.indices(ofDevice: device) {
      let key = KeyIndex(raw)
      if key != first {
        guard core.isPending(key) || states[Int(raw)].ready != nil, !isSending(key),
          !isAction(key), !states[Int(raw)].isWithheld, shares(lead, key)
        else { continue }
        if case .run(let run) = core.flush(key, at: now) { settle(run, at: now) }
        guard states[Int(raw)].ready != nil else { continue }
      }
      keys.append(key)
    }
    return keys
  }

  func shares(_ lead: CommandRoad, _ key: KeyIndex) -> Bool {
    let road = registry.properties[Int(key.rawValue)].property.command
    return road.topic == lead.topic && road.payload.isObject
  }

  private mutating func leave(
    _ key: KeyIndex,
    _ ready: ReadyValue,
    _ message: Int64,
    transition: Duration,
    at now: Moment
  ) {
    let place = Int(key.rawValue)
    if let older = states[place].onItsWay {
      // Sent and not confirmed: the newer value takes over.
      dropOnItsWay(key)
      states[place].approach.pass(older.change.value)
      tell(
        .superseded,
        of: older.change,
        for: key,
        collapsed: older.collapsed,
        attempt: older.attempt,
        reason: Self.newerValue,
        at: now
      )
    }
    if let older = states[place].arriving {
      states[place].arriving = nil
      states[place].approach.pass(older)
    }
    states[place].approach.begin(from: states[place].actual)
    states[place].onItsWay = Outstanding(
      change: ready.change,
      collapsed: ready.collapsed,
      attempt: ready.attempt,
      retries: ready.retries,
      isUrgent: ready.isUrgent,
      transition: transition,
      message: message
    )
    sendingCount += 1
    tell(
      .sending,
      of: ready.change,
      for: key,
      collapsed: ready.collapsed,
      attempt: ready.attempt,
      at: now
    )
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import JSON
package import LastOut

/// Messages in, publishes out.
extension RouteMachine {
  /// Accepts one message for the outputs that its topic feeds.
  ///
  /// `document` is the payload as JSON, if ``needsDocument(_:)`` requests it and it is JSON;
  /// `keys` is what ``outputs(fedBy:broker:)`` returned for the topic.
  package mutating func receive(
    _ payload: Span<UInt8>,
    document: JSONValue?,
    for keys: [KeyIndex],
    retained: Bool,
    trail: String,
    at now: Moment
  ) -> Verdict {
    guard !keys.isEmpty else { return .noRoute }
    statistics.messages += 1
    var verdict = Verdict.accepted
    for key in keys {
      received += 1
      let route = routes[outputs[Int(key.rawValue)].route]
      if retained, route.rewriter == nil, route.configuration.policy != nil {
        verdict = .retained
      } else if hasReturned(payload, for: key, at: now) {
        verdict = .returned(to: outputs[Int(key.rawValue)].topic)
      } else if let rewriter = route.rewriter {
        let message = announcement(payload, document, for: key, by: rewriter)
        if !forward(message.payload.span, nil, trail, for: key, retain: true, at: now) {
          verdict = .overflow
        } else if !message.isRead {
          verdict = .acceptedUnread
        }
      } else if route.configuration.policy == nil {
        if !forward(payload, document, trail, for: key, retain: retained, at: now) {
          verdict = .overflow
        }
      } else if !debounce(payload, document, trail, for: key, by: route, at: now) {
        verdict = .overflow
      }
    }
    return verdict
  }

  /// Whether a message is one that was forwarded; any other sender ends the pause of an output.
  private mutating func hasReturned(
    _ payload: Span<UInt8>,
    for key: KeyIndex,
    at now: Moment
  ) -> Bool {
    let wasPaused = returns.isPaused(key)
    let verdict = returns.receive(payload, for: key, at: now)
    if wasPaused, !returns.isPaused(key) { schedule(key) }
    return verdict == .returned
  }

  /// An announcement whose commands take the routes; one that cannot be read is as it came, and so
  /// is an empty one, which removes it.
  private func announcement(
    _ payload: Span<UInt8>,
    _ document: JSONValue?,
    for key: KeyIndex,
    by rewriter: AnnouncementRewriter
  ) -> (payload: [UInt8], isRead: Bool) {
    let topic = outputs[Int(key.rawValue)].topic
    guard !payload.isEmpty, AnnouncementRewriter.isAnnouncement(topic) else {
      return (Bytes.of(payload), true)
    }
    guard let document, let rewritten = rewriter.rewritten(document) else {
      return (Bytes.of(payload), false)
    }
    return (rewritten == document ? Bytes.of(payload) : JSONWriter.bytes(rewritten), true)
  }

  /// Queues a message unchanged; `false` when too many wait.
  private mutating func forward(
    _ payload: Span<UInt8>,
    _ document: JSONValue?,
    _ trail: String,
    for key: KeyIndex,
    retain: Bool,
    at now: Moment
  ) -> Bool {
    dropExpired(Int(key.rawValue), at: now)
    if payload.count > payloadLimit { dropLarge(Int(key.rawValue)) }
    guard waitingCount < limit else { return false }
    let content = self.content(payload, document, trail, for: key)
    guard follow(content, for: key, at: now) else { return false }
    queue(content, for: key, retain: retain, isPassed: true, at: now)
    return true
  }

  /// Drops the large messages of a topic: each states everything, and many would fill the memory.
  private mutating func dropLarge(_ place: Int) {
    let before = outputs[place].waiting.count
    outputs[place].waiting.removeAll { $0.content.size > payloadLimit }
    let dropped = before - outputs[place].waiting.count
    statistics.collapsed += UInt64(dropped)
    waitingCount -= dropped
  }

  private mutating func debounce(
    _ payload: Span<UInt8>,
    _ document: JSONValue?,
    _ trail: String,
    for key: KeyIndex,
    by route: Route,
    at now: Moment
  ) -> Bool {
    if route.configuration.urgent.contains(where: { $0.matches(payload, document) }) {
      hurry(content(payload, document, trail, for: key), for: key, at: now)
      return true
    }
    if route.configuration.pass.contains(where: { $0.matches(payload, document) }) {
      flush(key, at: now)
      return forward(payload, document, trail, for: key, retain: false, at: now)
    }
    var content = content(payload, document, trail, for: key)
    if route.configuration.mergesJSON {
      if case .object(let members)? = document {
        content.body = .members(MergedMembers.newest([], members))
        content.document = nil
      }
      guard separate(from: content, key, at: now) else { return false }
    }
    guard follow(content, for: key, at: now) else { return false }
    if route.configuration.mergesJSON {
      if let older = core.pending(key)?.value { content = older.replaced(by: content) }
    }
    let delay = route.wordDelay.flatMap { content.isWords(document) ? $0 : nil }
    if core.enqueue(content, for: key, at: now, delay: delay) != nil { statistics.collapsed += 1 }
    while let run = core.nextReady(at: now) {
      core.finish(run.key, at: now)
      queue(run.value, for: run.key, retain: false, isPassed: false, at: now)
    }
    return true
  }

  /// The content of a message for an output.
  private func content(
    _ payload: Span<UInt8>,
    _ document: JSONValue?,
    _ trail: String,
    for key: KeyIndex
  ) -> Content {
    Content(
      body: .bytes(Bytes.of(payload)),
      trail: trail,
      stamp: received,
      document: outputs[Int(key.rawValue)].target == nil ? nil : document
    )
  }

  /// Flushes pending content of the other kind than `newer`, since neither can replace the other;
  /// `false` when there is no room for both.
  private mutating func separate(from newer: Content, _ key: KeyIndex, at now: Moment) -> Bool {
    let place = Int(key.rawValue)
    let older = core.pending(key)?.value
    let settled = outputs[place].waiting.last.flatMap { $0.isPassed ? nil : $0.content }
    guard let before = older ?? settled, !before.isSameKind(as: newer) else { return true }
    dropExpired(place, at: now)
    guard waitingCount < limit else { return false }
    if older != nil { flush(key, at: now) }
    return true
  }

  /// Drops what waits on a topic, and queues an urgent message ahead of other topics; a topic that
  /// has its turn already keeps it.
  ///
  /// There is always room for it: a topic has at most one.
  private mutating func hurry(_ content: Content, for key: KeyIndex, at now: Moment) {
    let place = Int(key.rawValue)
    _ = follow(content, for: key, isUrgent: true, at: now)
    if case .cancelled = core.cancel(key) { statistics.collapsed += 1 }
    let dropped = outputs[place].waiting.count
    statistics.collapsed += UInt64(dropped)
    waitingCount += 1 - dropped
    outputs[place].waiting.removeAll()
    outputs[place].waiting.append(
      Entry(content: content, retain: false, isPassed: true, isUrgent: true, readyAt: now)
    )
    guard !outputs[place].isQueued, outputs[place].inFlight == nil, !returns.isPaused(key) else {
      return
    }
    outputs[place].isQueued = true
    order[routes[outputs[place].route].to].prepend(key)
  }

  /// Moves everything whose quiet period has ended to its broker's queue.
  package mutating func advance(to now: Moment) {
    while let run = core.nextRun(at: now) {
      core.finish(run.key, at: now)
      queue(run.value, for: run.key, retain: false, isPassed: false, at: now)
    }
    for key in returns.endPauses(at: now) { schedule(key) }
  }

  mutating func flush(_ key: KeyIndex, at now: Moment) {
    guard case .run(let run) = core.flush(key, at: now) else { return }
    core.finish(key, at: now)
    queue(run.value, for: key, retain: false, isPassed: false, at: now)
  }

  /// Ends every quiet period and every pause.
  package mutating func flushAll(at now: Moment) {
    for key in core.pendingKeys() { flush(key, at: now) }
    for key in returns.endPauses(at: Moment(nanoseconds: .max)) { schedule(key) }
  }

  /// Queues content for its broker; settled content replaces settled content of its kind that is
  /// directly before it.
  mutating func queue(
    _ content: Content,
    for key: KeyIndex,
    retain: Bool,
    isPassed: Bool,
    at now: Moment
  ) {
    let place = Int(key.rawValue)
    var entry = Entry(content: content, retain: retain, isPassed: isPassed, readyAt: now)
    if let last = outputs[place].waiting.last, entry.canReplace(last) {
      statistics.collapsed += 1
      entry.content = last.content.replaced(by: content)
      outputs[place].waiting.replaceLast(entry)
    } else {
      outputs[place].waiting.append(entry)
      waitingCount += 1
    }
    schedule(key)
  }

  private mutating func schedule(_ key: KeyIndex) {
    let place = Int(key.rawValue)
    guard !outputs[place].isQueued, outputs[place].inFlight == nil,
      !outputs[place].waiting.isEmpty, !returns.isPaused(key)
    else { return }
    outputs[place].isQueued = true
    order[routes[outputs[place].route].to].append(key)
  }

  /// The next message for a broker; call it while its client can publish.
  package mutating func nextPublish(for broker: Int, at now: Moment) -> Publish? {
    // Those that wait for older messages to the same devices, which keep their turn.
    var behind: [KeyIndex] = []
    defer { for key in behind.reversed() { order[broker].prepend(key) } }
    while let key = order[broker].popFirst() {
      let place = Int(key.rawValue)
      outputs[place].isQueued = false
      guard !returns.isPaused(key) else { continue }  // It is queued again when the pause ends.
      dropExpired(place, at: now)
      guard !isBehind(key, at: now) else {
        outputs[place].isQueued = true
        behind.append(key)
        continue
      }
      guard let entry = outputs[place].waiting.popFirst() else { continue }
      waitingCount -= 1
      outputs[place].inFlight = entry
      outputs[place].repeatable = entry.content
      inFlightCount += 1
      outputs[place].flight &+= 1
      statistics.published += 1
      let payload = entry.content.payload
      returns.forward(payload, by: key, at: now)
      return Publish(
        number: UInt64(outputs[place].flight) << 32 | UInt64(place),
        topic: outputs[place].topic,
        payload: payload,
        qos: routes[outputs[place].route].configuration.qos,
        retain: entry.retain,
        trail: entry.content.trail
      )
    }
    return nil
  }

  private mutating func dropExpired(_ place: Int, at now: Moment) {
    while let first = outputs[place].waiting.first, first.readyAt.duration(to: now) > ttl {
      outputs[place].waiting.removeFirst(1)
      waitingCount -= 1
      departures += 1
      statistics.expired += 1
    }
  }

  /// Records the broker's answer; the number of a message that was answered before is ignored.
  package mutating func finish(_ number: UInt64, _ outcome: Outcome) {
    let place = Int(number & 0xFFFF_FFFF)
    guard place < outputs.count, outputs[place].flight == UInt32(number >> 32),
      var entry = outputs[place].inFlight
    else { return }
    let repeatable = outputs[place].repeatable.take()
    outputs[place].inFlight = nil
    inFlightCount -= 1
    departures += 1
    if outcome != .acknowledged {
      returns.withdraw(entry.content.payload, by: KeyIndex(Int32(place)))
    }
    switch outcome {
    case .acknowledged: statistics.acknowledged += 1
    case .refused: break
    case .lost:
      guard let repeatable, outputs[place].waiting.first?.isUrgent != true else {
        statistics.collapsed += 1
        break
      }
      entry.content = repeatable
      if var newer = outputs[place].waiting.first, newer.canReplace(entry) {
        newer.content = entry.content.replaced(by: newer.content)
        outputs[place].waiting.replaceFirst(newer)
      } else {
        outputs[place].waiting.prepend(entry)
        waitingCount += 1
      }
    }
    schedule(KeyIndex(Int32(place)))
  }

  /// The topics whose last value has not been acknowledged.
  package func unsentTopics() -> [String] {
    outputs.indices.filter {
      !outputs[$0].waiting.isEmpty || outputs[$0].inFlight != nil
        || core.pending(KeyIndex(Int32($0))) != nil
    }.map { outputs[$0].topic }
  }
}

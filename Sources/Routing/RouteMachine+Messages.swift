// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
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
      let route = routes[outputs[key].route]
      if retained, route.rewriter == nil, route.configuration.policy != nil {
        verdict = .retained
      } else if hasReturned(payload, for: key, at: now) {
        verdict = .returned(to: outputs[key].topic)
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
    let topic = outputs[key].topic
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
    dropExpired(key, at: now)
    if payload.count > payloadLimit { dropLarge(key) }
    guard waitingCount < limit else { return false }
    let content = self.content(payload, document, trail, for: key)
    guard follow(content, for: key, at: now) else { return false }
    queue(content, for: key, retain: retain, isPassed: true, at: now)
    return true
  }

  /// Drops the large messages of a topic: each states everything, and many would fill the memory.
  private mutating func dropLarge(_ key: KeyIndex) {
    let before = outputs[key].waiting.count
    outputs[key].waiting.removeAll { $0.content.size > payloadLimit }
    let dropped = before - outputs[key].waiting.count
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
      document: outputs[key].target == nil ? nil : document
    )
  }

  /// Flushes pending content of the other kind than `newer`, since neither can replace the other;
  /// `false` when there is no room for both.
  private mutating func separate(from newer: Content, _ key: KeyIndex, at now: Moment) -> Bool {
    let older = core.pending(key)?.value
    let settled = outputs[key].waiting.last.flatMap { $0.isPassed ? nil : $0.content }
    guard let before = older ?? settled, !before.isSameKind(as: newer) else { return true }
    dropExpired(key, at: now)
    guard waitingCount < limit else { return false }
    if older != nil { flush(key, at: now) }
    return true
  }

  /// Drops what waits on a topic, and queues an urgent message ahead of other topics; a topic that
  /// has its turn already keeps it.
  ///
  /// There is always room for it: a topic has at most one.
  private mutating func hurry(_ content: Content, for key: KeyIndex, at now: Moment) {
    _ = follow(content, for: key, isUrgent: true, at: now)
    if case .cancelled = core.cancel(key) { statistics.collapsed += 1 }
    let dropped = outputs[key].waiting.count
    statistics.collapsed += UInt64(dropped)
    waitingCount += 1 - dropped
    outputs[key].waiting.removeAll()
    outputs[key].waiting.append(
      Entry(content: content, retain: false, isPassed: true, isUrgent: true, readyAt: now)
    )
    guard !outputs[key].isQueued, outputs[key].inFlight == nil, !returns.isPaused(key) else {
      return
    }
    outputs[key].isQueued = true
    order[routes[outputs[key].route].to].prepend(key)
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
    var entry = Entry(content: content, retain: retain, isPassed: isPassed, readyAt: now)
    if let last = outputs[key].waiting.last, entry.canReplace(last) {
      statistics.collapsed += 1
      entry.content = last.content.replaced(by: content)
      outputs[key].waiting.replaceLast(entry)
    } else {
      outputs[key].waiting.append(entry)
      waitingCount += 1
    }
    schedule(key)
  }

  private mutating func schedule(_ key: KeyIndex) {
    guard !outputs[key].isQueued, outputs[key].inFlight == nil,
      !outputs[key].waiting.isEmpty, !returns.isPaused(key)
    else { return }
    outputs[key].isQueued = true
    order[routes[outputs[key].route].to].append(key)
  }

  /// The next message for a broker; call it while its client can publish.
  package mutating func nextPublish(for broker: Int, at now: Moment) -> Publish? {
    // Those that wait for older messages to the same devices, which keep their turn.
    var behind: [KeyIndex] = []
    defer { for key in behind.reversed() { order[broker].prepend(key) } }
    while let key = order[broker].popFirst() {
      outputs[key].isQueued = false
      guard !returns.isPaused(key) else { continue }  // It is queued again when the pause ends.
      dropExpired(key, at: now)
      guard !isBehind(key, at: now) else {
        outputs[key].isQueued = true
        behind.append(key)
        continue
      }
      guard let entry = outputs[key].waiting.popFirst() else { continue }
      waitingCount -= 1
      outputs[key].inFlight = entry
      outputs[key].repeatable = entry.content
      inFlightCount += 1
      outputs[key].flight &+= 1
      statistics.published += 1
      let payload = entry.content.payload
      returns.forward(payload, by: key, at: now)
      return Publish(
        number: UInt64(outputs[key].flight) << 32 | UInt64(key.rawValue),
        topic: outputs[key].topic,
        payload: payload,
        qos: routes[outputs[key].route].configuration.qos,
        retain: entry.retain,
        trail: entry.content.trail
      )
    }
    return nil
  }

  private mutating func dropExpired(_ key: KeyIndex, at now: Moment) {
    while let first = outputs[key].waiting.first, first.readyAt.duration(to: now) > ttl {
      outputs[key].waiting.removeFirst(1)
      waitingCount -= 1
      departures += 1
      statistics.expired += 1
    }
  }

  /// Records the broker's answer; the number of a message that was answered before is ignored.
  package mutating func finish(_ number: UInt64, _ outcome: PublishOutcome) {
    let place = Int(number & 0xFFFF_FFFF)
    guard place < outputs.count else { return }
    let key = KeyIndex(Int32(place))
    guard outputs[key].flight == UInt32(number >> 32), var entry = outputs[key].inFlight else {
      return
    }
    let repeatable = outputs[key].repeatable.take()
    outputs[key].inFlight = nil
    inFlightCount -= 1
    departures += 1
    if outcome != .acknowledged {
      returns.withdraw(entry.content.payload, by: key)
    }
    switch outcome {
    case .acknowledged: statistics.acknowledged += 1
    case .refused: break
    case .lost:
      guard let repeatable, outputs[key].waiting.first?.isUrgent != true else {
        statistics.collapsed += 1
        break
      }
      entry.content = repeatable
      if var newer = outputs[key].waiting.first, newer.canReplace(entry) {
        newer.content = entry.content.replaced(by: newer.content)
        outputs[key].waiting.replaceFirst(newer)
      } else {
        outputs[key].waiting.prepend(entry)
        waitingCount += 1
      }
    }
    schedule(key)
  }

  /// The topics whose last value has not been acknowledged.
  package func unsentTopics() -> [String] {
    outputs.keys.filter {
      !outputs[$0].waiting.isEmpty || outputs[$0].inFlight != nil || core.pending($0) != nil
    }.map { outputs[$0].topic }
  }
}

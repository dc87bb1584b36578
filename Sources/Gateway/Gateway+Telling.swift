// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import LastOut
import Operations

/// Who hears of an event of a command's life.
extension Gateway {
  /// Tells an event to whoever listens or waits for it.
  func tell(_ event: borrowing CommandEvent) {
    guard isForOthers(event) else { return answer(event) }
    let entry = registry[event.key]
    tallies.devices[entry.device].note(event)
    guard needsNoObject(event) else { return tellAsObject(copy event, of: entry.key) }
    answer(event)
    http?.forgetFailure(of: entry.key)
    let isTold = isOnEventTopic(event.phase)
    let responseTopic = event.isFinal ? event.origin?.responseTopic : nil
    guard isTold || responseTopic != nil else { return }
    var payload: [UInt8] = []
    payload.reserveCapacity(Self.usualEvent)
    identifiers.append(event, key: entry.key, withTextID: true, to: &payload)
    if isTold { links[0].tell(payload, on: surface.eventTopic(entry.key)) }
    if let responseTopic { reply(payload, on: responseTopic, to: event.origin) }
  }

  /// Bytes of most events, at most.
  private static var usualEvent: Int { 240 }

  /// Whether an event is for MQTT and the client of the control socket who asked, so that it need not
  /// become an object with texts first.
  private func needsNoObject(_ event: borrowing CommandEvent) -> Bool {
    guard !machine.isWatched, onEvent == nil, refusedValues.isEmpty else { return false }
    if http != nil, event.phase == .failed || event.phase == .expired { return false }
    guard let origin = event.origin else { return true }
    return origin.replyTo <= HTTPSurface.lowestNumber
  }

  private func tellAsObject(_ event: CommandEvent, of key: String) {
    var object = identifiers.object(event, key: key)
    if !refusedValues.isEmpty, let value = refusedValues.removeValue(forKey: event.number) {
      object.value = value
    }
    onEvent?(object)
    controlSocket?.tell(object, of: event)
    http?.tell(object, of: event)
    let payload = object.bytes
    if isOnEventTopic(event.phase) { links[0].tell(payload, on: surface.eventTopic(key)) }
    if event.isFinal, let topic = event.origin?.responseTopic {
      reply(payload, on: topic, to: event.origin)
    }
  }

  /// Whether an event of this phase is told on the key's event topic.
  private func isOnEventTopic(_ phase: Phase) -> Bool {
    switch phase {
    case .accepted, .superseded, .sending: false
    case .unchanged, .cancelled, .rejected, .sent, .confirmed, .failed, .expired: true
    }
  }

  private func reply(_ payload: [UInt8], on topic: String, to origin: ChangeOrigin?) {
    links[0].enqueue(
      .init(
        topic: topic,
        payload: payload,
        correlationData: origin?.correlationData,
        isKept: true
      )
    )
  }

  /// Tells an event to the client of the control socket who asked, if one did.
  private func answer(_ event: borrowing CommandEvent) {
    guard let origin = event.origin, let asker = controlSocket?.asker(origin, event.phase) else {
      return
    }
    line.removeAll(keepingCapacity: true)
    identifiers.append(event, key: registry[event.key].key, to: &line)
    asker.sendLine(line)
    if event.isFinal, origin.wantsPhases { asker.endWait() }
  }

  /// The same of an `accepted` that was held, of which nobody else hears.
  ///
  /// `asker` is who was answered last, and is often asked for again.
  func answer(_ accepted: borrowing HeldEvents.Accepted, through asker: inout ControlConnection?) {
    guard let client = accepted.origin?.replyTo, client != 0 else { return }
    if asker?.number != client { asker = controlSocket?.connection(client) }
    guard let asker else { return }
    line.removeAll(keepingCapacity: true)
    identifiers.append(accepted, key: registry[accepted.key].key, to: &line)
    asker.sendLine(line)
    asker.hasReplied()
  }

  /// Whether all that is to be told can wait until the commands have left: nobody hears of it but
  /// the clients of the control socket who asked.
  ///
  /// With a journal nothing waits, since what was accepted must be on its way to the disk first.
  var canReplyLater: Bool {
    guard journal == nil, !isRecorded else { return false }
    let events = machine.events
    let due = events.span
    for index in due.indices where isForOthers(due[index]) { return false }
    return true
  }

  /// Tells clients of the control socket what they are still to hear of earlier requests, before
  /// anything else is told.
  func tellOwed() {
    if owesReplies { distribute(at: EventLoop.now()) }
  }

  /// Whether anybody at all hears of an event.
  func isHeard(_ event: borrowing CommandEvent) -> Bool {
    if let origin = event.origin, origin.wantsPhases || event.phase == .accepted { return true }
    return isForOthers(event)
  }

  /// Whether somebody hears of an event beside the client of the control socket who asked.
  private func isForOthers(_ event: borrowing CommandEvent) -> Bool {
    isForOthers(event.phase, event.origin)
  }

  func isForOthers(_ phase: Phase, _ origin: ChangeOrigin?) -> Bool {
    if machine.isWatched || onEvent != nil { return true }
    if isOnEventTopic(phase) { return true }
    guard let origin else { return false }
    return origin.responseTopic != nil || origin.replyTo > HTTPSurface.lowestNumber
  }
}

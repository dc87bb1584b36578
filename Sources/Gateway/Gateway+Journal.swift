// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Devices
import Durability
package import Journal
import LastOut
import Operations

/// The journal's part in the life of a command: what is accepted is on the disk before anybody is
/// told, and nothing leaves that a crash could follow with something older.
extension Gateway {
  /// Opens the journal that the configuration names, if any; to be called before ``start()``.
  ///
  /// A disk that cannot be written, or a damaged file, is no error: the log tells.
  ///
  /// - Throws: When the file must not be used: a newer format, another program's, in use.
  package func openJournal() throws(JournalRefusal) {
    guard let wanted = configuration.journal else { return }
    var settings = JournalPlan.Settings()
    settings.commit = wanted.commit
    journal = try JournalLink(
      path: wanted.path,
      settings: settings,
      keys: registry.properties.count,
      loop: loop
    )
    machine.isJournalled = true
    journal?.journal.keptValue = { [unowned self] key, sequence in kept(key, sequence) }
  }

  /// What the journal writes of a value that it has accepted.
  private func kept(_ key: JournalKey, _ sequence: UInt64) -> JournalledValue {
    guard let command = journal?.command(key, sequence) else {
      preconditionFailure("Without a journal nothing is written.")
    }
    return JournalledValue(
      command.value,
      id: identifiers.identifier(
        of: command.number,
        acceptedAt: command.acceptedAt,
        origin: command.origin
      ),
      origin: command.origin,
      options: command.options
    )
  }

  // MARK: - Before a change

  /// Refuses a change that could not be kept.
  ///
  /// What is urgent is never refused for the journal's sake: a stop that cannot be written down
  /// stops all the same.
  func admit(
    _ change: CommandStateMachine.Change,
    of key: KeyIndex,
    to link: JournalLink,
    at now: Moment
  ) throws(ValidationError) {
    guard link.journal.isBroken || link.held.count >= configuration.limits.pending else { return }
    guard isJournalled(key) else { return }
    if case .set(let value) = change, machine.isUrgent(value, of: key) { return }
    if link.held.count >= configuration.limits.pending {
      throw .notDurable("\(link.held.count) changes wait for the journal's disk, which is slow")
    }
    let number = link.journalKey(key, named: name(of: key))
    if let fault = link.journal.refusal(of: number, at: now) {
      throw .notDurable(Self.overtakenReason(fault))
    }
  }

  /// Whether values of `key` survive a crash: an action is for the moment.
  func isJournalled(_ key: KeyIndex) -> Bool { !machine.isAction(key) }

  static func overtakenReason(_ fault: JournalFault) -> String {
    "the journal cannot be written (\(fault)), and after a crash would send an older value again"
  }

  static func memoryReason(_ fault: JournalFault) -> String {
    "held in memory only, the journal cannot be written: \(fault)"
  }

  // MARK: - Events

  /// Brings events to the journal, in order.
  func record(_ events: Span<CommandEvent>, in link: JournalLink, at now: Moment) {
    for index in events.indices {
      record(events[index], replacing: Self.replaced(index, in: events), in: link, at: now)
    }
  }

  /// The command that ends right after the event at `index`, because that one is newer.
  private static func replaced(_ index: Int, in events: Span<CommandEvent>) -> UInt64? {
    let next = index + 1
    guard next < events.count, case .superseded = events[next].phase,
      events[next].key == events[index].key
    else { return nil }
    return events[next].number
  }

  /// Brings an event to the journal, then tells it, or holds it until its value is on the disk.
  private func record(
    _ event: borrowing CommandEvent,
    replacing replaced: UInt64? = nil,
    in link: JournalLink,
    at now: Moment
  ) {
    var isDue = false
    switch event.phase {
    case .accepted: return accept(event, replacing: replaced, in: link, at: now)
    case .sending:
      link.left(event.key, named: name(of: event.key), number: event.number)
      guard isHeard(event) else { return }
    case .sent, .confirmed, .unchanged:
      isDue = ended(event, in: link, at: now, promptly: false)
    case .superseded:
      isDue = ended(event, in: link, at: now, promptly: true)
      guard isHeard(event) else {
        if isDue { tellHeld(link.held.take(event.key)) }
        return
      }
    case .cancelled, .rejected, .failed, .expired:
      isDue = ended(event, in: link, at: now, promptly: true)
    }
    guard link.held.holds(event.key) else { return tell(event) }
    link.held.hold(event)
    if isDue { tellHeld(link.held.take(event.key)) }
  }

  private func ended(
    _ event: borrowing CommandEvent,
    in link: JournalLink,
    at now: Moment,
    promptly: Bool
  ) -> Bool {
    link.ended(
      event.key,
      named: name(of: event.key),
      number: event.number,
      at: now,
      promptly: promptly
    )
  }

  private func accept(
    _ event: borrowing CommandEvent,
    replacing replaced: UInt64?,
    in link: JournalLink,
    at now: Moment
  ) {
    guard !event.isAction, let value = event.value, let expiresAt = event.expiresAt else {
      if isHeard(event) { tell(event) }
      return
    }
    let isUrgent = event.isUrgent
    let sequence = link.accept(
      event,
      value,
      replacing: replaced,
      named: name(of: event.key),
      expiresAt: expiresAt,
      isUrgent: isUrgent
    )
    if link.journal.isBroken, let fault = link.journal.fault {
      return acceptInMemory(copy event, isUrgent, fault, link, at: now)
    }
    if isUrgent || !link.withholds(event.key) {
      withholdIfNeeded(event.key, sequence, in: link, at: now)
    }
    guard event.origin != nil || isHeard(event) else { return }
    link.held.hold(event, value, until: sequence)
    if let client = event.origin?.replyTo, client != 0 {
      controlSocket?.owesReply(to: client, held: link.held.count)
    }
  }

  /// Nothing can be written: the change counts all the same, and its reply says so, unless a crash
  /// would bring back an older value.
  private func acceptInMemory(
    _ event: CommandEvent,
    _ isUrgent: Bool,
    _ fault: JournalFault,
    _ link: JournalLink,
    at now: Moment
  ) {
    let number = link.journalKey(event.key, named: name(of: event.key))
    if !isUrgent, link.journal.refusal(of: number, at: now) != nil {
      // A step that waited for the device's state: it was not refused when it came.
      return refuseOvertaken(event.key, first: event, fault, in: link, at: now)
    }
    guard isHeard(event) else { return }
    var event = event
    event.reason = Self.memoryReason(fault)
    tell(event)
  }

  /// A value must not leave while a crash would send an older one of its key after it.
  func withholdIfNeeded(
    _ key: KeyIndex,
    _ sequence: UInt64,
    in link: JournalLink,
    at now: Moment
  ) {
    let number = link.journalKey(key, named: name(of: key))
    guard link.journal.holdsOlder(number, than: sequence, at: now), link.withhold(key, at: now)
    else { return }
    machine.withhold(key, at: now)
  }

  /// Tells what was held; whoever waited for it waits no more.
  func tellHeld(_ events: [CommandEvent], inMemoryBecause fault: JournalFault? = nil) {
    for event in events { tellHeld(event, inMemoryBecause: fault) }
  }

  /// Tells what waited for everything up to `sequence`.
  private func tellHeld(
    through sequence: UInt64,
    in link: JournalLink,
    inMemoryBecause fault: JournalFault? = nil
  ) {
    var asker: ControlConnection?
    while let held = link.held.takeNext(through: sequence) {
      switch held {
      case .accepted(let accepted) where fault == nil && !isForOthers(.accepted, accepted.origin):
        answer(accepted, through: &asker)
      case .accepted, .other: tellHeld(held.event, inMemoryBecause: fault)
      }
    }
    controlSocket?.noteHeld(link.held.count)
  }

  private func tellHeld(_ event: consuming CommandEvent, inMemoryBecause fault: JournalFault?) {
    guard case .accepted = event.phase else { return tell(event) }
    if let fault { event.reason = Self.memoryReason(fault) }
    tell(event)
    guard let client = event.origin?.replyTo, client != 0 else { return }
    controlSocket?.hasReplied(to: client, held: journal?.held.count ?? 0)
  }

  private func name(of key: KeyIndex) -> String { registry.properties[Int(key.rawValue)].key }

  // MARK: - The journal's news

  /// Gives the journal its turn; `true` when it had something to tell.
  func advanceJournal(at now: Moment) -> Bool {
    guard let link = journal, !link.isClosing else { return false }
    link.advance(to: now)
    let news = link.journal.takeNews()
    var resumption = Resumption()
    for item in news { hear(item, &resumption, in: link, at: now) }
    if !resumption.isEmpty { log.info("Values of the last run", resumption.fields) }
    let released = link.takeReleased(at: now) { name(of: $0) }
    for key in released { machine.release(key, at: now) }
    return !news.isEmpty || !released.isEmpty
  }

  private func hear(
    _ news: JournalNews,
    _ resumption: inout Resumption,
    in link: JournalLink,
    at now: Moment
  ) {
    switch news {
    case .durable(let sequence): tellHeld(through: sequence, in: link)
    case .memoryOnly(let sequence, let fault, let overtaken):
      log.error(
        "Journal degraded: what is accepted from now on does not survive a crash",
        ["path": link.path, "reason": fault.description]
      )
      Notify.status("Journal degraded: \(fault)")
      showStatus()
      for name in overtaken {
        guard let key = try? registry.index(of: name) else { continue }
        refuseOvertaken(key, first: nil, fault, in: link, at: now)
      }
      tellHeld(through: sequence, in: link, inMemoryBecause: fault)
    case .recovered:
      log.info("Journal works again", ["path": link.path])
      Notify.status("Running")
      showStatus()
    case .replay(let entry, let remaining):
      if resume(entry, remaining: remaining, in: link, at: now) {
        resumption.resumed += 1
      } else {
        resumption.dropped += 1
      }
    case .expired(let entry, let reason):
      resumption.expired += 1
      expire(entry, because: reason, at: now)
    case .setAside(let found):
      log.error(
        "Journal damaged: set aside, and a new one begun; what it held is not sent",
        ["path": link.path, "kept_as": found.path ?? "nothing was left", "reason": found.reason]
      )
    }
  }

  // MARK: - What must not count as accepted

  /// Refuses after all what was taken of a key and cannot be kept.
  ///
  /// A crash would bring back something older. `first` has not been told or held.
  private func refuseOvertaken(
    _ key: KeyIndex,
    first: CommandEvent?,
    _ fault: JournalFault,
    in link: JournalLink,
    at now: Moment
  ) {
    if link.rows[Int(key.rawValue)].newest.isUrgent { return }
    let reason = Self.overtakenReason(fault)
    var told: Set<UInt64> = []
    var held = link.held.take(key)
    if let first { held.append(first) }
    // What is on its way cannot be refused any more.
    let underWay = link.rows[Int(key.rawValue)].underWay
    for var event in held {
      if event.phase == .accepted, underWay.isOf(event.number) {
        tellHeld([event], inMemoryBecause: fault)
        continue
      }
      let owed = event.phase == .accepted && event.number != first?.number
      let client = owed ? event.origin?.replyTo ?? 0 : 0
      if event.phase == .accepted {
        told.insert(event.number)
        event.phase = .rejected
        event.reason = reason
        event.isFinal = true
        http?.note(.notDurable(reason), of: event)
      } else if told.contains(event.number) {
        continue
      }
      tell(event)
      if client != 0 { controlSocket?.hasReplied(to: client, held: link.held.count) }
    }
    // What the machine tells meanwhile of other commands takes its way.
    distribute(at: now)
    machine.refuseWaiting(key, reason: reason, at: now)
    var events: [CommandEvent] = []
    swap(&events, &machine.events)
    for event in events {
      if told.contains(event.number) {
        _ = ended(event, in: link, at: now, promptly: true)
      } else {
        if event.phase == .rejected { http?.note(.notDurable(reason), of: event) }
        record(event, in: link, at: now)
      }
    }
  }

  // MARK: - The status

  /// Shows on the status topic whether the journal works; the payload stays what it is.
  func showStatus() {
    guard isConnected, shutdown == nil else { return }
    links[0].enqueue(statusMessage)
  }

  /// `online`, retained; a journal that cannot be written is a user property of it.
  var statusMessage: BrokerLink.Message {
    var message = BrokerLink.Message(
      topic: surface.statusTopic,
      payload: Array("online".utf8),
      retain: true
    )
    if let fault = journal?.journal.fault {
      message.userProperties["journal"] = "degraded: \(fault)"
    }
    return message
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
import Devices
import Durability
package import LastOut

/// The journal's own decisions before a simulated disk, joined to the command machine as the gateway
/// joins them.
///
/// What says something about a value is held until it would survive a crash, with all that follows of
/// the same key; a key is withheld while a crash would send an older value after its newest.
package struct Journalled: RestartMemory {
  /// A command's number in the machine and its value's in the journal.
  private struct Ticket: Sendable {
    var number: UInt64
    var sequence: UInt64
    var isUrgent: Bool
    /// It was handed to the broker.
    var hasLeft = false
  }

  private struct Held: Sendable {
    var key: KeyIndex
    var number: UInt64
    var phase: Phase
    /// It waits for everything up to here.
    var sequence: UInt64
  }

  private var plan: JournalPlan
  private var disk: SimulatedDisk
  private let flaw: JournalFlaw?
  private var now = Moment.zero
  private var replayAt: Moment?
  private var news: [MemoryNews] = []
  /// The commands of each key that a restart would send, the oldest first.
  private var tickets: [KeyIndex: [Ticket]] = [:]
  private var held: [Held] = []
  package private(set) var withheld: Set<KeyIndex> = []
  /// When urgent values among them leave whatever the disk does.
  private var patienceEnds: Moment?
  /// Commands that were refused after their machine had accepted them.
  private var refused: Set<UInt64> = []
  /// The rows of what is to be sent again, by the values' orders.
  private var found: [UInt64: UInt64] = [:]
  /// What a flaw sends too late.
  private var late: [(survivor: Survivor, at: Moment)] = []

  /// A journal with an empty file; `flaw` is a mistake that the simulation has to find.
  package init(seed: UInt64, flaw: JournalFlaw? = nil) {
    self.flaw = flaw
    disk = SimulatedDisk(seed: seed, flaw: flaw)
    plan = JournalPlan(contents: JournalContents())
  }

  // MARK: - Questions

  package var nextDeadline: Moment? {
    [plan.nextDeadline, replayAt, disk.endsAt, late.first?.at, patienceEnds].compactMap { $0 }.min()
  }

  package var isIdle: Bool { plan.isIdle && !disk.isBusy && plan.fault == nil }

  package func isPrompt(at now: Moment) -> Bool {
    if plan.fault != nil || disk.isBusy { return true }
    return plan.nextDeadline.map { $0 <= now.advanced(by: plan.settings.commit) } ?? false
  }

  package var images: [[Survivor]] {
    ([disk.written] + disk.synced).map { rows in
      rows.values.map { Self.survivor($0, expiresAt: .zero) }
    }
  }

  package func refusal(of key: KeyIndex, at now: Moment) -> String? {
    guard flaw != .ignoresRefusal else { return nil }
    return plan.refusal(of: Self.name(key), at: now)?.description
  }

  // MARK: - Events

  package mutating func take(_ event: CommandEvent, _ survivor: Survivor?) {
    now = event.at
    var isDue = false
    switch event.phase {
    case .accepted:
      accept(event, survivor)
      return
    case .sending: left(event)
    case .sent, .confirmed, .unchanged: isDue = ended(event, promptly: false)
    case .superseded, .cancelled, .rejected, .failed, .expired:
      isDue = ended(event, promptly: true)
    }
    guard !refused.contains(event.number) else { return }
    guard held.contains(where: { $0.key == event.key }) else {
      return tell(event.number, event.phase)
    }
    hold(event, until: 0)
    if isDue { release(isDurable: false) { $0.key == event.key } }
  }

  private mutating func accept(_ event: CommandEvent, _ survivor: Survivor?) {
    guard let survivor else { return tell(event.number, .accepted) }
    let key = Self.name(event.key)
    let receipt = plan.accept(
      Self.bytes(survivor),
      for: key,
      ttl: event.acceptedAt.duration(to: survivor.expiresAt),
      at: event.acceptedAt,
      isUrgent: survivor.isUrgent
    )
    let ticket = Ticket(
      number: event.number,
      sequence: receipt.sequence,
      isUrgent: survivor.isUrgent
    )
    tickets[event.key, default: []].append(ticket)
    guard receipt.fault == nil else {
      let isRefused =
        !survivor.isUrgent && flaw != .ignoresRefusal
        && plan.refusal(of: key, at: event.acceptedAt) != nil
      // A step that waited for the device's state: it was not refused when it came.
      return isRefused ? refuse(event.key, first: event.number) : tell(event.number, .accepted)
    }
    if flaw != .leavesEarly { withholdIfNeeded(event.key, receipt.sequence) }
    guard flaw != .tellsEarly else { return tell(event.number, .accepted, isDurable: true) }
    hold(event, until: receipt.sequence)
  }

  private mutating func left(_ event: CommandEvent) {
    guard let place = tickets[event.key]?.firstIndex(where: { $0.number == event.number }),
      let ticket = tickets[event.key]?[place]
    else { return }
    tickets[event.key]?[place].hasLeft = true
    if flaw == .removesAtSending {
      plan.ended(Self.name(event.key), ticket.sequence, at: event.at, promptly: false)
    } else {
      plan.sending(Self.name(event.key), sequence: ticket.sequence)
    }
  }

  /// Tells the journal that a command is over; whether what waits of its key is due at once.
  private mutating func ended(_ event: CommandEvent, promptly: Bool) -> Bool {
    guard let place = tickets[event.key]?.firstIndex(where: { $0.number == event.number }),
      let ticket = tickets[event.key]?.remove(at: place)
    else { return false }
    if flaw == .neverRemoves, event.phase == .sent { return false }
    return plan.ended(
      Self.name(event.key),
      ticket.sequence,
      at: event.at,
      promptly: promptly && flaw != .cancelsLazily
    )
  }

  // MARK: - Telling

  private mutating func tell(_ number: UInt64, _ phase: Phase, isDurable: Bool = false) {
    news.append(.told(number: number, phase: phase, isDurable: isDurable))
  }

  private mutating func hold(_ event: CommandEvent, until sequence: UInt64) {
    let known = held.last { $0.key == event.key }?.sequence ?? 0
    let entry = Held(
      key: event.key,
      number: event.number,
      phase: event.phase,
      sequence: max(known, sequence)
    )
    held.append(entry)
  }

  private mutating func release(isDurable: Bool, where isDue: (Held) -> Bool) {
    for entry in held where isDue(entry) {
      tell(entry.number, entry.phase, isDurable: isDurable)
    }
    held.removeAll { isDue($0) }
  }

  /// Refuses after all what was taken of a key; `first` is neither told nor held yet.
  private mutating func refuse(_ key: KeyIndex, first: UInt64?) {
    guard tickets[key]?.last?.isUrgent != true else { return }
    // What is on its way cannot be refused any more.
    let left = (tickets[key] ?? []).filter(\.hasLeft).map(\.number)
    var numbers = held.filter { $0.key == key && $0.phase == .accepted }.map(\.number)
    numbers.removeAll { left.contains($0) }
    if let first { numbers.append(first) }
    for number in numbers { tell(number, .rejected) }
    refused.formUnion(numbers)
    for entry in held where entry.key == key && !numbers.contains(entry.number) {
      tell(entry.number, entry.phase)
    }
    held.removeAll { $0.key == key }
    news.append(.refused(key))
  }

  // MARK: - Time

  package mutating func advance(to now: Moment) {
    self.now = now
    if let result = disk.advance(to: now) {
      plan.completed(result, at: now)
      if plan.awaitsReplay { replayAt = now }
    }
    if let due = replayAt, due <= now {
      plan.decideReplay(disk.clocks.read(at: now))
      replayAt = plan.awaitsReplay ? now.advanced(by: .seconds(1)) : nil
    }
    if let work = plan.nextWork(at: now) { disk.begin(work, at: now) }
    while let first = late.first, first.at <= now {
      news.append(.replay(late.removeFirst().survivor))
    }
    let heard = plan.takeEvents()
    for item in heard { hear(item) }
    let isImpatient = patienceEnds.map { $0 <= now } ?? false
    for key in withheld where mayLeave(key, isImpatient) { withheld.remove(key) }
    if isImpatient || withheld.isEmpty { patienceEnds = nil }
  }

  /// A value must not leave while a crash would send an older one of its key after it; an urgent
  /// one waits for 250 ms at most.
  private mutating func withholdIfNeeded(_ key: KeyIndex, _ sequence: UInt64) {
    guard plan.holdsOlder(Self.name(key), than: sequence, at: now) else { return }
    withheld.insert(key)
    if tickets[key]?.last?.isUrgent == true, patienceEnds == nil {
      patienceEnds = now.advanced(by: .milliseconds(250))
    }
  }

  private func mayLeave(_ key: KeyIndex, _ isImpatient: Bool) -> Bool {
    guard plan.fault == nil, let newest = tickets[key]?.last, !(isImpatient && newest.isUrgent)
    else { return true }
    return !plan.holdsOlder(Self.name(key), than: newest.sequence, at: now)
  }

  private mutating func hear(_ item: JournalNews) {
    switch item {
    case .durable(let through): release(isDurable: true) { $0.sequence <= through }
    case .memoryOnly(let through, _, let overtaken):
      if flaw == .forgetsReplies { held = [] }
      if flaw != .keepsOvertaken {
        for name in overtaken { refuse(Self.index(name), first: nil) }
      }
      release(isDurable: false) { $0.sequence <= through }
    case .recovered: break
    case .replay(let entry, let remaining): replay(entry, expiresAt: now.advanced(by: remaining))
    case .expired(let entry, _):
      if flaw == .replaysExpired {
        replay(entry, expiresAt: now.advanced(by: .seconds(5)))
      } else if flaw != .expiresSilently {
        news.append(.expired(Self.survivor(entry, expiresAt: now)))
      }
    case .setAside: preconditionFailure("A simulated file is never damaged.")
    }
  }

  private mutating func replay(_ entry: JournalEntry, expiresAt: Moment) {
    let survivor = Self.survivor(entry, expiresAt: expiresAt)
    found[survivor.order] = entry.sequence
    if flaw == .replaysLate {
      late.append((survivor, now.advanced(by: .seconds(2))))
    } else {
      news.append(.replay(survivor))
    }
  }

  package mutating func takeNews() -> [MemoryNews] {
    defer { news.removeAll(keepingCapacity: true) }
    return news
  }

  package mutating func flush(at now: Moment) { plan.flush(at: now) }

  // MARK: - Another start

  package mutating func resumed(_ survivor: Survivor, as number: UInt64) {
    guard let sequence = found.removeValue(forKey: survivor.order) else { return }
    let ticket = Ticket(number: number, sequence: sequence, isUrgent: survivor.isUrgent)
    tickets[survivor.key, default: []].append(ticket)
    withholdIfNeeded(survivor.key, sequence)
  }

  package mutating func restart(
    after end: GatewayEnd,
    at now: Moment,
    start: Moment
  ) -> [Survivor] {
    let rows = disk.restart(after: end, at: now, start: start)
    let entries = rows.values.sorted { $0.sequence < $1.sequence }
    plan = JournalPlan(contents: JournalContents(entries: entries))
    news = []
    tickets = [:]
    held = []
    withheld = []
    patienceEnds = nil
    refused = []
    found = [:]
    late = []
    replayAt = start
    advance(to: start)
    return entries.map { Self.survivor($0, expiresAt: .zero) }
  }

  package mutating func disturb(_ trouble: DiskTrouble, until end: Moment) {
    disk.disturb(trouble, until: end)
  }

  package mutating func heal() { disk.heal() }

  package mutating func sleep(for duration: Duration) { disk.sleep(for: duration) }

  // MARK: - Rows

  private static func name(_ key: KeyIndex) -> String { String(key.rawValue) }

  private static func index(_ name: String) -> KeyIndex {
    guard let number = Int32(name) else { preconditionFailure("No key is named \(name).") }
    return KeyIndex(number)
  }

  /// What a row holds of a value: its order, a letter for its type, its text.
  private static func bytes(_ survivor: Survivor) -> [UInt8] {
    let (letter, text) =
      switch survivor.value {
      case .number(let number): ("n", "\(number)")
      case .boolean(let flag): ("b", "\(flag)")
      case .text(let text): ("t", text)
      case .color: preconditionFailure("The simulated house has no colors.")
      }
    return Array("\(survivor.order) \(letter)\(text)".utf8)
  }

  private static func survivor(_ entry: JournalEntry, expiresAt: Moment) -> Survivor {
    let parts = String(decoding: entry.value, as: UTF8.self)
      .split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
    let text = String(parts[1].dropFirst())
    let value: Value =
      switch parts[1].first {
      case "n": .number(Double(text) ?? .nan)
      case "b": .boolean(text == "true")
      default: .text(text)
      }
    return Survivor(
      key: index(entry.key),
      value: value,
      order: UInt64(parts[0]) ?? 0,
      expiresAt: expiresAt
    )
  }
}

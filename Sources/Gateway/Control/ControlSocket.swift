// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Control
import Devices
import GatewayCore
import Glibc
import LastOut
import Operations
import Values

/// The unix socket that `settle` and other programs talk to: NDJSON, many clients at once.
final class ControlSocket {
  let path: String
  private unowned let gateway: GatewayHost
  private let lock: Int32
  private var listener: Int32
  private var watch: IOWatch?
  private var connections: [UInt64: ControlConnection] = [:]
  private var lastNumber: UInt64 = 0
  /// Connections with lines left, in the order in which they get their next turn.
  private var turns: [UInt64] = [] { didSet { budget.waiting = turns.count } }
  private let budget = TurnBudget()
  /// Connections that watch or record.
  private var observers: [ControlConnection] = []
  private var turnTimer: LoopTimer?
  /// Connections with replies that were not sent yet.
  private var unsent: [ControlConnection] = []
  /// Whether so much waits for the journal's disk that clients must slow down.
  var isDiskBehind = false {
    didSet {
      guard isDiskBehind != oldValue else { return }
      for connection in connections.values { connection.isDiskBehind = isDiskBehind }
    }
  }
  /// The requester of the last event; the next event is often for the same one.
  private var lastRequester: ControlConnection?
  private var acceptor = ConnectionAcceptor()
  /// Ends lines that take too long; armed while there is an unfinished one.
  private var lineTimer: LoopTimer?
  private var isLineTimerArmed = false
  /// Log lines about clients that were refused, by reason, and about those that were dropped.
  private var refusals: [String: RejectionTally] = [:]
  private var drops = RejectionTally()
  private static let connectionLimit = 512
  /// Memory that slow clients may take together, in bytes; it is added up after ``checkAfter``
  /// more.
  private static let slowClientMemory = 60 << 20
  private static let checkAfter = 1 << 20
  /// Clients that are accepted in one turn of the loop.
  private static let acceptLimit = 64
  /// Bytes of events that may wait for one client.
  private static let eventMemory = 16 << 20

  /// Takes the lock and listens.
  ///
  /// The folder is made if missing; the socket is for its owner and
  /// group.
  init(path: String, gateway: GatewayHost) throws(OperationsError) {
    self.path = path
    self.gateway = gateway
    try SocketFile.makeFolder(of: path)
    lock = try SocketFile.lock(path + ".lock")
    do throws(OperationsError) {
      listener = try SocketFile.listen(at: path)
    } catch {
      Glibc.close(lock)
      throw error
    }
    watch = try gateway.context.loop.watch(listener, for: .read, named: "control socket") {
      [unowned self] _ in accept()
    }
    turnTimer = try gateway.context.loop.makeTimer(named: "control clients' turns") {
      [unowned self] in takeTurns()
    }
    lineTimer = try gateway.context.loop.makeTimer(named: "control clients' lines") {
      [unowned self] in endLateLines()
    }
  }

  private(set) var hasWatchers = false
  private(set) var hasRecorders = false

  /// Finds out which clients watch or record.
  func updateObservers() {
    observers = connections.values.filter(\.isListening)
    hasWatchers = observers.contains { !$0.watches.isEmpty }
    hasRecorders = observers.contains { !$0.recordings.isEmpty }
  }

  private func accept() {
    for connection in connections.values { connection.endIfAbandoned() }
    // Who has come before, and hung up, is heard to the end before who comes now.
    takeTurns()
    // If more have come, the loop says so again.
    for _ in 0..<Self.acceptLimit {
      switch acceptor.accept(from: listener) {
      case .connection(let descriptor): start(descriptor)
      case .outOfDescriptors:
        guard let refused = recordRefusal("no descriptors") else { return }
        gateway.context.log.warning(
          "Control connection refused: no file descriptors left",
          ["count": refused.count, "total": refused.total]
        )
        return
      case .none: return
      }
    }
  }

  private func start(_ descriptor: Int32) {
    guard makeRoom() else {
      Glibc.close(descriptor)
      guard let refused = recordRefusal("too many") else { return }
      gateway.context.log.warning(
        "Control connection refused: too many connections",
        [
          "limit": String(Self.connectionLimit), "count": refused.count, "total": refused.total,
        ]
      )
      return
    }
    lastNumber += 1
    let connection = ControlConnection(
      number: lastNumber,
      descriptor: descriptor,
      lineLimit: gateway.context.configuration.limits.line,
      budget: budget
    )
    // The gateway owns this socket, which owns the connection and ends it first.
    connection.onLine = { [unowned gateway] line, connection in
      gateway.requests.receive(line, from: connection)
    }
    connection.onWalk = { [unowned gateway] walk, limit, output in
      gateway.requests.advance(&walk, limit: limit, to: &output)
    }
    connection.onInputEnd = { [unowned gateway] in gateway.emitReady() }
    connection.onUnsent = { [unowned self] connection in unsent.append(connection) }
    connection.onTurnWanted = { [unowned self] connection in queue(connection) }
    connection.onEnd = { [unowned self] connection in ended(connection) }
    connection.onDeadline = { [unowned self] in awaitDeadline() }
    do throws(OperationsError) {
      try connection.start(on: gateway.context.loop)
      connection.isDiskBehind = isDiskBehind
      connections[lastNumber] = connection
    } catch {  // The connection closes its descriptor.
      guard let refused = recordRefusal("no watch") else { return }
      gateway.context.log.warning(
        "Control connection refused",
        ["reason": error.description, "count": refused.count, "total": refused.total]
      )
    }
  }

  /// Counts a refused client; the result is for the log, if a line is due.
  private func recordRefusal(_ reason: String) -> (count: String, total: String)? {
    let now = EventLoop.now()
    guard let count = refusals[reason, default: RejectionTally()].record(at: now) else {
      return nil
    }
    return (String(count), String(refusals[reason]?.total ?? count))
  }

  /// Makes room for one more client; `false` if all others are in the middle of something.
  ///
  /// The first to go is the client that has read nothing of what waits for it for longest, else who
  /// has not ended a line for longest, else who has been idle for longest, else who has lagged
  /// behind for longest. If most lag behind, those go before the idle ones.
  private func makeRoom() -> Bool {
    guard connections.count >= Self.connectionLimit else { return true }
    let now = EventLoop.now()
    func oldest(
      _ moment: KeyPath<ControlConnection, Moment?>,
      where condition: (ControlConnection) -> Bool = { _ in true }
    ) -> ControlConnection? {
      let candidates = connections.values.filter(condition).compactMap { connection in
        connection[keyPath: moment].map { (connection: connection, since: $0) }
      }
      return candidates.min { $0.since < $1.since }?.connection
    }
    let lagging = oldest(\.behindSince) { $0.isBehind(at: now) }
    let isCrowd = connections.values.count { $0.isBehind(at: now) } > Self.connectionLimit / 2
    let leaving =
      oldest(\.stalledSince) { $0.isStalled(at: now) } ?? oldest(\.unfinishedSince)
      ?? (isCrowd ? lagging : nil) ?? oldest(\.idleSince) ?? lagging
    guard let leaving else { return false }
    let limit = Self.connectionLimit
    leaving.end(
      saying: ErrorReply(.limit, "\(limit) clients are connected, which is the limit; others wait")
    )
    leaving.end()
    return connections.count < Self.connectionLimit
  }

  // MARK: - Clients that hold others up

  /// Sees to it that unfinished lines, and replies that are not read, are looked at in time.
  private func awaitDeadline() {
    guard !isLineTimerArmed else { return }
    isLineTimerArmed = true
    lineTimer?.arm(at: EventLoop.now().advanced(by: ControlConnection.lineTime))
  }

  private func endLateLines() {
    let now = EventLoop.now()
    for connection in connections.values {
      if connection.isLateReader(at: now) {
        drop(connection)
      } else {
        connection.endIfLate(at: now)
      }
    }
    let next = connections.values.compactMap(\.deadline).min()
    isLineTimerArmed = next != nil
    if let next { lineTimer?.arm(at: next) }
  }

  /// Drops clients that do not read what they asked for.
  ///
  /// One that has read nothing for a second may owe `limits.events`; all of them together may hold
  /// ``slowClientMemory``, replies included, and the one that owes most goes first.
  private func dropSlowClients() {
    guard budget.unread > 0 else { return }
    let now = EventLoop.now()
    let limit = gateway.context.configuration.limits.events
    for connection in observers
    where connection.stalledEvents(at: now) > limit || connection.eventBytes > Self.eventMemory {
      drop(connection)
    }
    limitDebts()
  }

  private func limitDebts() {
    guard budget.unread >= Self.checkAfter else { return }
    budget.unread = 0
    var debts = connections.values.map { (debt: $0.debt, connection: $0) }
      .filter { $0.debt > 0 }
      .sorted { $0.debt < $1.debt }
    var total = debts.reduce(0) { $0 + $1.debt }
    while total > Self.slowClientMemory, let largest = debts.popLast() {
      total -= largest.debt
      drop(largest.connection)
    }
  }

  private func drop(_ connection: ControlConnection) {
    let missed = connection.endAsTooSlow()
    guard let count = drops.record(at: EventLoop.now()) else { return }
    gateway.context.log.warning(
      "Control client dropped: it does not read its replies",
      ["missed_events": String(missed), "count": String(count), "total": String(drops.total)]
    )
  }

  /// Lets a connection go on in the loop's next batch, after everything else that has come.
  private func queue(_ connection: ControlConnection) {
    turns.append(connection.number)
    turnTimer?.arm(at: .zero)
  }

  /// Gives each client that waits a turn, as far as the budget of this turn of the loop goes.
  private func takeTurns() {
    var left = turns.count
    while left > 0, !budget.isSpent {
      left -= 1
      connections[turns.removeFirst()]?.takeTurn()
    }
    if !turns.isEmpty { turnTimer?.arm(at: .zero) }
  }

  private func ended(_ connection: ControlConnection) {
    connections[connection.number] = nil
    lastRequester = nil
    if connection.isListening { gateway.events.updateObservers() }
  }

  func connection(_ number: UInt64) -> ControlConnection? {
    if let lastRequester, lastRequester.number == number { return lastRequester }
    guard let found = connections[number] else { return nil }
    lastRequester = found
    return found
  }

  /// Sends what was told in this batch, at its end.
  func sendReplies() {
    budget.renew()
    limitDebts()
    guard !unsent.isEmpty else { return }
    var due: [ControlConnection] = []
    swap(&due, &unsent)
    for connection in due { connection.flush() }
    due.removeAll(keepingCapacity: true)
    if unsent.isEmpty { swap(&due, &unsent) }  // The capacity goes back.
  }

  /// Sends an event to the clients that watch its key; they share its text.
  func sendToWatchers(_ object: EventObject) {
    guard hasWatchers else { return }
    let key = Array(object.key.unicodeScalars)
    var text: [UInt8]?
    for connection in observers {
      for watch in connection.watches where watch.pattern.matches(key) {
        let bytes = text ?? object.bytes
        text = bytes
        connection.sendWatched(bytes, watch: watch.id)
      }
      limitDebts()
    }
    if text != nil { dropSlowClients() }
  }

  /// Takes no new connections; those that are open stay to hear the end.
  func stopListening() {
    guard watch != nil else { return }
    watch?.cancel()
    watch = nil
    Glibc.close(listener)
    unsafe unlink(path)
  }

  func close() {
    stopListening()
    gateway.emitReady()
    sendReplies()
    for connection in connections.values { connection.end() }
    connections = [:]
    observers = []
    lastRequester = nil
    turnTimer?.cancel()
    lineTimer?.cancel()
    // The file stays: removed, it could be locked by two gateways, each with a file of its own.
    Glibc.close(lock)
  }
}

/// Recording: accepted changes, as lines that `simulate` plays.
extension ControlSocket {
  /// Sends an accepted change to the clients that record its key; each counts time from its own
  /// start.
  func sendToRecorders(_ change: RecordedChange, key: String) {
    guard hasRecorders else { return }
    let operation: ControlRequest.Operation =
      switch change.operation {
      case .set(let value): .set(value.json)
      case .flush: .flush
      case .cancel: .cancel
      }
    var request = ControlRequest(operation, key: key)
    request.now = change.skipsQuiet
    request.source = change.source.map(Self.shortened)
    let name = Array(key.unicodeScalars)
    for connection in observers {
      for recording in connection.recordings where recording.pattern.matches(name) {
        let time = recording.start.duration(to: change.at).wholeNanoseconds
        request.at = Double(time) / 1_000_000
        connection.sendEvent(.recorded(request, record: recording.id))
      }
      limitDebts()
    }
    dropSlowClients()
  }

  /// The longest source that the grammar accepts, in bytes; a topic may be longer.
  private static let longestSource = 64

  private static func shortened(_ source: String) -> String {
    guard source.utf8.count > longestSource else { return source }
    var result = ""
    for character in source {
      guard result.utf8.count + character.utf8.count <= longestSource else { break }
      result.append(character)
    }
    return result
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Control
import Devices
import Glibc
import LastOut
import Operations

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
  private var turns: [UInt64] = []
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
  /// Bytes of events since the debts of slow clients were added up.
  private var uncheckedBytes = 0
  private static let connectionLimit = 512
  /// Memory that slow clients may take together, in bytes; it is added up after ``checkAfter`` more.
  private static let slowClientMemory = 60 << 20
  private static let checkAfter = 1 << 20
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

  var hasWatchers: Bool { connections.values.contains { !$0.watches.isEmpty } }

  var hasRecorders: Bool { connections.values.contains { !$0.recordings.isEmpty } }

  private func accept() {
    for connection in connections.values { connection.endIfAbandoned() }
    // Who has come before, and hung up, is heard to the end before who comes now.
    takeTurns()
    while true {
      switch acceptor.accept(from: listener) {
      case .connection(let descriptor): start(descriptor)
      case .outOfDescriptors:
        gateway.context.log.warning("Control connection refused: no file descriptors left")
        return
      case .none: return
      }
    }
  }

  private func start(_ descriptor: Int32) {
    guard makeRoom() else {
      Glibc.close(descriptor)
      gateway.context.log.warning(
        "Control connection refused: too many connections",
        ["limit": String(Self.connectionLimit)]
      )
      return
    }
    lastNumber += 1
    let connection = ControlConnection(
      number: lastNumber,
      descriptor: descriptor,
      lineLimit: gateway.context.configuration.limits.line
    )
    // The gateway owns this socket, which owns the connection and ends it first.
    connection.onLine = { [unowned gateway] line, connection in
      gateway.requests.receive(line, from: connection)
    }
    connection.onInputEnd = { [unowned gateway] in gateway.emitReady() }
    connection.onUnsent = { [unowned self] connection in unsent.append(connection) }
    connection.onTurnWanted = { [unowned self] connection in queue(connection) }
    connection.onEnd = { [unowned self] connection in ended(connection) }
    connection.onEvent = { [unowned self] bytes in uncheckedBytes += bytes }
    connection.onUnfinished = { [unowned self] in awaitLines() }
    do throws(OperationsError) {
      try connection.start(on: gateway.context.loop)
      connection.isDiskBehind = isDiskBehind
      connections[lastNumber] = connection
    } catch {
      Glibc.close(descriptor)
      gateway.context.log.warning("Control connection refused", ["reason": error.description])
    }
  }

  /// Makes room for one more client; `false` if all others are in the middle of something.
  ///
  /// Who has not ended a line for longest goes, else who has been idle for longest.
  private func makeRoom() -> Bool {
    guard connections.count >= Self.connectionLimit else { return true }
    let late = connections.values.filter { $0.unfinishedSince != nil }
      .min { ($0.unfinishedSince ?? .zero) < ($1.unfinishedSince ?? .zero) }
    let idle = connections.values.filter(\.isIdle).min { $0.heardAt < $1.heardAt }
    guard let leaving = late ?? idle else { return false }
    let limit = Self.connectionLimit
    leaving.end(
      saying: ErrorReply(.limit, "\(limit) clients are connected, which is the limit; others wait")
    )
    leaving.end()
    return connections.count < Self.connectionLimit
  }

  // MARK: - Clients that hold others up

  /// Sees to it that unfinished lines are looked at in time.
  private func awaitLines() {
    guard !isLineTimerArmed else { return }
    isLineTimerArmed = true
    lineTimer?.arm(at: EventLoop.now().advanced(by: ControlConnection.lineTime))
  }

  private func endLateLines() {
    let now = EventLoop.now()
    for connection in connections.values { connection.endIfLate(at: now) }
    let next = connections.values.compactMap(\.unfinishedSince).min()
    isLineTimerArmed = next != nil
    if let next { lineTimer?.arm(at: next.advanced(by: ControlConnection.lineTime)) }
  }

  /// Drops clients that do not read the events they asked for.
  ///
  /// One that has read nothing for a second may owe `limits.events`; all of them together may hold
  /// ``slowClientMemory``, and the one that owes most goes first.
  private func dropSlowClients() {
    guard uncheckedBytes > 0 else { return }
    let now = EventLoop.now()
    let limit = gateway.context.configuration.limits.events
    for connection in connections.values
    where connection.stalledEvents(at: now) > limit || connection.eventBytes > Self.eventMemory {
      drop(connection)
    }
    guard uncheckedBytes >= Self.checkAfter else { return }
    uncheckedBytes = 0
    var debts = connections.values.map { (debt: $0.debt(at: now), connection: $0) }
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
    gateway.context.log.warning(
      "Control client dropped: it does not read its replies",
      ["missed_events": String(missed)]
    )
  }

  /// Lets a connection go on in the loop's next batch, after everything else that has come.
  private func queue(_ connection: ControlConnection) {
    turns.append(connection.number)
    turnTimer?.arm(at: .zero)
  }

  private func takeTurns() {
    var due: [UInt64] = []
    swap(&due, &turns)
    for number in due { connections[number]?.takeTurn() }
  }

  private func ended(_ connection: ControlConnection) {
    connections[connection.number] = nil
    lastRequester = nil
    if !connection.watches.isEmpty || !connection.recordings.isEmpty {
      gateway.events.updateObservers()
    }
  }

  func connection(_ number: UInt64) -> ControlConnection? {
    if let lastRequester, lastRequester.number == number { return lastRequester }
    guard let found = connections[number] else { return nil }
    lastRequester = found
    return found
  }

  /// Sends what was told in this batch.
  func sendReplies() {
    guard !unsent.isEmpty else { return }
    var due: [ControlConnection] = []
    swap(&due, &unsent)
    for connection in due { connection.flush() }
    due.removeAll(keepingCapacity: true)
    if unsent.isEmpty { swap(&due, &unsent) }  // The capacity goes back.
  }

  /// Sends an event to the clients that watch its key.
  func sendToWatchers(_ object: EventObject) {
    for connection in connections.values {
      for watch in connection.watches where watch.pattern.matches(object.key) {
        connection.sendEvent(.watched(object, watch: watch.id))
      }
    }
    dropSlowClients()
  }

  /// Sends a change to the clients that record its key; each counts time from its own start.
  func sendToRecorders(_ change: ControlRequest, at now: Moment) {
    for connection in connections.values {
      for recording in connection.recordings where recording.pattern.matches(change.key) {
        var change = change
        change.at = Double(recording.start.duration(to: now).wholeNanoseconds) / 1_000_000
        connection.sendEvent(.recorded(change, record: recording.id))
      }
    }
    dropSlowClients()
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
    lastRequester = nil
    turnTimer?.cancel()
    lineTimer?.cancel()
    // The file stays: removed, it could be locked by two gateways, each with a file of its own.
    Glibc.close(lock)
  }
}

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
  /// Kept open to be given up when the process is out of descriptors: without one, a waiting client
  /// could be neither taken nor refused.
  private var spare: Int32
  private static let connectionLimit = 512

  /// Where the socket is made if nothing else is said.
  static func defaultPath() -> String {
    if let runtime = Environment["XDG_RUNTIME_DIR"], !runtime.isEmpty {
      return "\(runtime)/settle.sock"
    }
    return "/run/settle/settle.sock"
  }

  /// Takes the lock and listens.
  ///
  /// The folder is made if missing; the socket is for its owner and
  /// group.
  init(path: String, gateway: GatewayHost) throws(OperationsError) {
    self.path = path
    self.gateway = gateway
    try SocketFile.makeFolder(of: path)
    spare = SocketFile.spareDescriptor()
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
  }

  var hasWatchers: Bool { connections.values.contains { !$0.watches.isEmpty } }

  var hasRecorders: Bool { connections.values.contains { !$0.recordings.isEmpty } }

  private func accept() {
    for connection in connections.values { connection.endIfAbandoned() }
    // Who has come before, and hung up, is heard to the end before who comes now.
    takeTurns()
    while true {
      let descriptor = Glibc.accept(listener, nil, nil)
      guard descriptor >= 0 else {
        if errno == EMFILE || errno == ENFILE { refuseOne() }
        return
      }
      SocketFile.makeNonblocking(descriptor)
      guard connections.count < Self.connectionLimit else {
        Glibc.close(descriptor)
        gateway.context.log.warning(
          "Control connection refused: too many",
          ["limit": String(Self.connectionLimit)]
        )
        continue
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
      do throws(OperationsError) {
        try connection.start(on: gateway.context.loop)
        connection.isDiskBehind = isDiskBehind
        connections[lastNumber] = connection
      } catch {
        Glibc.close(descriptor)
        gateway.context.log.warning("Control connection refused", ["reason": error.description])
      }
    }
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

  /// Turns away the client that waits first: the process is out of descriptors.
  private func refuseOne() {
    Glibc.close(spare)
    let descriptor = Glibc.accept(listener, nil, nil)
    if descriptor >= 0 { Glibc.close(descriptor) }
    spare = SocketFile.spareDescriptor()
    gateway.context.log.warning("Control connection refused: no file descriptor is left")
  }

  private func ended(_ connection: ControlConnection) {
    connections[connection.number] = nil
    lastRequester = nil
    if connection.isTooSlow {
      gateway.context.log.warning("Control client dropped: it does not read what it asked for")
    }
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
        connection.send(.watched(object, watch: watch.id))
      }
    }
  }

  /// Sends a change to the clients that record its key; each counts time from its own start.
  func sendToRecorders(_ change: ControlRequest, at now: Moment) {
    for connection in connections.values {
      for recording in connection.recordings where recording.pattern.matches(change.key) {
        var change = change
        change.at = Double(recording.start.duration(to: now).wholeNanoseconds) / 1_000_000
        connection.send(.recorded(change, record: recording.id))
      }
    }
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
    // The file stays: removed, it could be locked by two gateways, each with a file of its own.
    Glibc.close(lock)
    Glibc.close(spare)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import Synchronization

/// The thread of a ``ScriptedBroker``, its connections, and the received packets.
final class ScriptedBrokerWorker: Sendable {
  struct Records {
    var connections: [Moment] = []
    var packets: [ScriptedPacket] = []
    var isStopping = false
  }

  /// One connection.
  private final class Connection {
    let descriptor: Int32
    let number: Int
    var splitter = PacketSplitter()
    var isVersion5 = false

    init(descriptor: Int32, number: Int) {
      self.descriptor = descriptor
      self.number = number
    }
  }

  private let records = Mutex(Records())
  /// Wakes the thread.
  private let wakeUp: WakePipe
  /// Wakes the thread that waits for an event.
  private let changed: WakePipe
  private let listener: Int32
  private let script: ScriptedBroker.Script

  init(listener: Int32, script: ScriptedBroker.Script) throws {
    self.listener = listener
    self.script = script
    wakeUp = try WakePipe()
    changed = try WakePipe()
  }

  deinit {
    close(listener)
  }

  func stop() {
    records.withLock { $0.isStopping = true }
    wakeUp.wake()
  }

  func read<Result: Sendable>(_ body: (Records) -> Result) -> Result {
    records.withLock { body($0) }
  }

  /// Waits until `condition` holds, checked after each event; for one thread at a time.
  func wait(within limit: Duration, _ condition: (Records) -> Bool) -> Bool {
    changed.wait(within: limit) { read(condition) }
  }

  func run() {
    var open: [Connection] = []
    defer { for connection in open { close(connection.descriptor) } }
    while !read(\.isStopping) {
      var requests = ([wakeUp.reader, listener] + open.map(\.descriptor)).map {
        pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
      }
      _ = unsafe poll(&requests, nfds_t(requests.count), -1)
      wakeUp.drain()
      var ended: Set<Int> = []
      for (connection, request) in zip(open, requests.dropFirst(2)) where request.revents != 0 {
        if !serve(connection) { ended.insert(connection.number) }
      }
      open.removeAll { ended.contains($0.number) }
      if requests[1].revents != 0, let connection = welcome() { open.append(connection) }
    }
  }

  /// Accepts a connection; `nil` if it has ended already.
  private func welcome() -> Connection? {
    let descriptor = accept(listener, nil, nil)
    guard descriptor >= 0 else { return nil }
    // A client that does not read must not block the thread forever.
    var patience = timeval(tv_sec: 0, tv_usec: 100_000)
    let size = socklen_t(MemoryLayout<timeval>.size)
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, size)
    let number = records.withLock { records in
      records.connections.append(EventLoop.now())
      return records.connections.count
    }
    changed.wake()
    let connection = Connection(descriptor: descriptor, number: number)
    return perform(script.atConnection(number), on: connection) ? connection : nil
  }

  /// Reads and answers; `false` once the connection is closed.
  private func serve(_ connection: Connection) -> Bool {
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    let count = unsafe recv(connection.descriptor, &bytes, bytes.count, 0)
    guard count > 0 else {
      close(connection.descriptor)
      return false
    }
    for (_, bytes) in connection.splitter.take(bytes[..<count]) {
      let packet = ScriptedPacket(
        bytes,
        connection: connection.number,
        isVersion5: connection.isVersion5
      )
      connection.isVersion5 = packet.isVersion5
      records.withLock { $0.packets.append(packet) }
      changed.wake()
      guard perform(script.atPacket(packet), on: connection) else { return false }
    }
    return true
  }

  /// Performs the actions; `false` once the connection is closed.
  private func perform(_ actions: [ScriptedBroker.Action], on connection: Connection) -> Bool {
    for action in actions {
      switch action {
      case .send(let bytes): send(bytes, to: connection)
      case .drip(let bytes, let count):
        var isTaken = true
        for _ in 0..<count where isTaken {
          isTaken = send(bytes, to: connection)
          _ = poll(nil, 0, 1)
        }
      case .close:
        close(connection.descriptor)
        return false
      case .reset:
        var atOnce = linger(l_onoff: 1, l_linger: 0)
        let size = socklen_t(MemoryLayout<linger>.size)
        unsafe setsockopt(connection.descriptor, SOL_SOCKET, SO_LINGER, &atOnce, size)
        close(connection.descriptor)
        return false
      }
    }
    return true
  }

  /// `false` when the peer has disconnected, or this thread must stop.
  @discardableResult
  private func send(_ bytes: [UInt8], to connection: Connection) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let count = unsafe bytes.withUnsafeBytes {
        unsafe Glibc.send(
          connection.descriptor,
          $0.baseAddress?.advanced(by: sent),
          bytes.count - sent,
          Int32(MSG_NOSIGNAL)
        )
      }
      if count > 0 {
        sent += count
      } else if errno != EAGAIN && errno != EINTR || read(\.isStopping) {
        return false
      }
    }
    return true
  }
}

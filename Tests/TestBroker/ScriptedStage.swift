// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import Synchronization

/// What a ``ScriptedBroker`` works with: its thread, its connections, and what it has seen.
final class ScriptedStage: Sendable {
  struct Records {
    var connections: [Moment] = []
    var packets: [ScriptedPacket] = []
    var isStopping = false
  }

  /// One connection.
  private final class Visitor {
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
  private let bell: Bell
  /// Wakes who waits for something to have come.
  private let news: Bell
  private let listener: Int32
  private let script: ScriptedBroker.Script

  init(listener: Int32, script: ScriptedBroker.Script) throws {
    self.listener = listener
    self.script = script
    bell = try Bell()
    news = try Bell()
  }

  deinit {
    close(listener)
  }

  func stop() {
    records.withLock { $0.isStopping = true }
    bell.ring()
  }

  func read<Result: Sendable>(_ body: (Records) -> Result) -> Result {
    records.withLock { body($0) }
  }

  /// Waits until `condition` holds, asked after each event; for one thread at a time.
  func wait(within limit: Duration, _ condition: (Records) -> Bool) -> Bool {
    news.wait(within: limit) { read(condition) }
  }

  func run() {
    var visitors: [Visitor] = []
    defer { for visitor in visitors { close(visitor.descriptor) } }
    while !read(\.isStopping) {
      var requests = ([bell.reader, listener] + visitors.map(\.descriptor)).map {
        pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
      }
      _ = unsafe poll(&requests, nfds_t(requests.count), -1)
      bell.silence()
      var ended: Set<Int> = []
      for (visitor, request) in zip(visitors, requests.dropFirst(2)) where request.revents != 0 {
        if !serve(visitor) { ended.insert(visitor.number) }
      }
      visitors.removeAll { ended.contains($0.number) }
      if requests[1].revents != 0, let visitor = welcome() { visitors.append(visitor) }
    }
  }

  /// Takes a connection; `nil` if it has ended already.
  private func welcome() -> Visitor? {
    let descriptor = accept(listener, nil, nil)
    guard descriptor >= 0 else { return nil }
    // A client that reads nothing must not keep the thread for ever.
    var patience = timeval(tv_sec: 0, tv_usec: 100_000)
    let size = socklen_t(MemoryLayout<timeval>.size)
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, size)
    let number = records.withLock { records in
      records.connections.append(EventLoop.now())
      return records.connections.count
    }
    news.ring()
    let visitor = Visitor(descriptor: descriptor, number: number)
    return perform(script.atConnection(number), on: visitor) ? visitor : nil
  }

  /// Reads and answers; `false` once the connection is gone.
  private func serve(_ visitor: Visitor) -> Bool {
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    let count = unsafe recv(visitor.descriptor, &bytes, bytes.count, 0)
    guard count > 0 else {
      close(visitor.descriptor)
      return false
    }
    for (_, bytes) in visitor.splitter.take(bytes[..<count]) {
      let packet = ScriptedPacket(
        bytes,
        connection: visitor.number,
        isVersion5: visitor.isVersion5
      )
      visitor.isVersion5 = packet.isVersion5
      records.withLock { $0.packets.append(packet) }
      news.ring()
      guard perform(script.atPacket(packet), on: visitor) else { return false }
    }
    return true
  }

  /// Does what the script says; `false` once the connection is gone.
  private func perform(_ actions: [ScriptedBroker.Action], on visitor: Visitor) -> Bool {
    for action in actions {
      switch action {
      case .send(let bytes): send(bytes, to: visitor)
      case .drip(let bytes, let count):
        var isTaken = true
        for _ in 0..<count where isTaken {
          isTaken = send(bytes, to: visitor)
          _ = poll(nil, 0, 1)
        }
      case .close:
        close(visitor.descriptor)
        return false
      case .reset:
        var atOnce = linger(l_onoff: 1, l_linger: 0)
        let size = socklen_t(MemoryLayout<linger>.size)
        unsafe setsockopt(visitor.descriptor, SOL_SOCKET, SO_LINGER, &atOnce, size)
        close(visitor.descriptor)
        return false
      }
    }
    return true
  }

  /// `false` when the other side is gone, or this one is to stop.
  @discardableResult
  private func send(_ bytes: [UInt8], to visitor: Visitor) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let count = unsafe bytes.withUnsafeBytes {
        unsafe Glibc.send(
          visitor.descriptor,
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

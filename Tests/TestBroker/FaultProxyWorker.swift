// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import Synchronization

/// The thread of a ``FaultProxy``, and the state that it shares with callers.
final class FaultProxyWorker: Sendable {
  struct State {
    var faults = FaultProxy.Faults()
    var isCutting = false
    var isStopping = false
    var connections = 0
    var lostPackets = 0
  }

  private let state = Mutex(State())
  /// Wakes the thread.
  private let wakeUp: WakePipe
  /// Wakes the thread that waits for a count.
  private let changed: WakePipe
  private let listener: Int32
  private let target: Int

  init(listener: Int32, target: Int) throws {
    self.listener = listener
    self.target = target
    wakeUp = try WakePipe()
    changed = try WakePipe()
  }

  deinit {
    close(listener)
  }

  func change(_ change: (inout State) -> Void) {
    state.withLock { change(&$0) }
    wakeUp.wake()
  }

  func read<Result: Sendable>(_ body: (State) -> Result) -> Result {
    state.withLock { body($0) }
  }

  /// Waits until `condition` holds, checked after each change of a count; for one thread at a time.
  func wait(within limit: Duration, _ condition: (State) -> Bool) -> Bool {
    changed.wait(within: limit) { read(condition) }
  }

  private func count(_ change: (inout State) -> Void) {
    state.withLock { change(&$0) }
    changed.wake()
  }

  func run() {
    var pairs: [ProxyPair] = []
    defer { for pair in pairs { pair.end(isReset: false) } }
    while true {
      let now = EventLoop.now()
      var requests = [
        pollfd(fd: wakeUp.reader, events: Int16(POLLIN), revents: 0),
        pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
      ]
      for pair in pairs { requests += pair.requests(at: now) }
      let next = pairs.compactMap { $0.nextDue(after: now) }.min()
      let wait = next.map { Int32(clamping: now.duration(to: $0) / .milliseconds(1)) + 1 } ?? -1
      _ = unsafe poll(&requests, nfds_t(requests.count), wait)
      wakeUp.drain()
      let (isStopping, isCutting) = state.withLock { state in
        defer { state.isCutting = false }
        return (state.isStopping, state.isCutting)
      }
      if isStopping { return }
      if isCutting {
        for pair in pairs { pair.end(isReset: true) }
        pairs = []
        continue
      }
      for (number, pair) in pairs.enumerated() {
        serve(pair, client: requests[2 + 2 * number], broker: requests[3 + 2 * number])
      }
      pairs.removeAll { $0.isEnded }
      if requests[1].revents != 0, let pair = accept() { pairs.append(pair) }
    }
  }

  private func accept() -> ProxyPair? {
    let client = Glibc.accept(listener, nil, nil)
    guard client >= 0 else { return nil }
    count { $0.connections += 1 }
    // A dead connection does not show whether there is a broker behind it.
    if read({ $0.faults.lost.contains(.toBroker) }) {
      return ProxyPair(client: client, broker: nil)
    }
    guard let broker = LoopbackPort.connected(to: target) else {
      close(client)
      return nil
    }
    return ProxyPair(client: client, broker: broker)
  }

  private func serve(_ pair: ProxyPair, client: pollfd, broker: pollfd) {
    let now = EventLoop.now()
    // After reading: a change that was made before the bytes were sent applies to them.
    if client.revents & Int16(POLLIN | POLLHUP | POLLERR) != 0 {
      let bytes = pair.read(from: .toBroker)
      state.withLock { _ = pair.pass(bytes, .toBroker, &$0.faults, at: now) }
    }
    if broker.revents & Int16(POLLIN | POLLHUP | POLLERR) != 0 {
      let bytes = pair.read(from: .toClient)
      count { $0.lostPackets += pair.pass(bytes, .toClient, &$0.faults, at: now) }
    }
    pair.write(at: now)
  }
}

extension Int32 {
  fileprivate init(clamping number: Double) {
    self = number >= Double(Int32.max - 1) ? Int32.max - 1 : Int32(number)
  }
}

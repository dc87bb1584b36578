// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import Synchronization

/// Begins one connection on a thread of its own: resolving names and reading files may block.
///
/// A connection that was abandoned is freed on that thread.
final class ConnectThread: Sendable {
  /// An attempt that has ended, with what is left of its round.
  struct Attempt: Sendable {
    var round: AddressRound
    var result: Result
  }

  enum Result: Sendable {
    case connection(Connection)
    case failure(ConnectionProblem)
  }

  /// Finds the addresses of a host; blocks.
  typealias Resolver = @Sendable (_ host: String) throws(UnresolvedName) -> [String]

  private enum Slot: Sendable {
    case working
    case done(Attempt)
    /// Delivered or abandoned.
    case closed
  }

  /// The maximum number of threads in the process, abandoned ones included.
  static let mostThreads = 8
  /// The number of running threads, abandoned ones included.
  private static let running = Atomic<Int>(0)
  /// Whether another thread may start.
  static var hasRoom: Bool { running.load(ordering: .relaxed) < mostThreads }

  private let slot = Locked<Slot>(.working)

  /// Starts an attempt; wakes `waker` when ``result()`` has its result.
  init(
    configuration: MQTTConfiguration,
    round: AddressRound,
    resolve: @escaping Resolver,
    waker: Waker
  ) {
    let job = Job(
      owner: self,
      configuration: configuration,
      round: round,
      resolve: resolve,
      waker: waker
    )
    Self.running.add(1, ordering: .relaxed)
    do throws(OperationsError) {
      try WorkerThread { job.run() }.detach()
    } catch {
      Self.running.subtract(1, ordering: .relaxed)
      let problem = ConnectionProblem(.unreachable, "cannot start a thread for the connection")
      // The other addresses need a thread too: the client waits before it tries again.
      var round = round
      round.skipRest()
      finish(Attempt(round: round, result: .failure(problem)), waker)
    }
  }

  /// Removes and returns the result; `nil` while there is none.
  func result() -> Attempt? {
    slot.withLock { slot in
      guard case .done(let attempt) = slot else { return nil }
      slot = .closed
      return attempt
    }
  }

  /// Drops the result, now or when it arrives.
  func abandon() {
    // The connection in the slot is freed after the lock.
    _ = slot.withLock { slot in
      defer { slot = .closed }
      return slot
    }
  }

  private func finish(_ attempt: Attempt, _ waker: Waker) {
    let isWanted = slot.withLock { slot in
      guard case .working = slot else { return false }
      slot = .done(attempt)
      return true
    }
    if isWanted { waker.wake() }
  }

  private final class Job: Sendable {
    let owner: ConnectThread
    let configuration: MQTTConfiguration
    let round: AddressRound
    let resolve: Resolver
    let waker: Waker

    init(
      owner: ConnectThread,
      configuration: MQTTConfiguration,
      round: AddressRound,
      resolve: @escaping Resolver,
      waker: Waker
    ) {
      self.owner = owner
      self.configuration = configuration
      self.round = round
      self.resolve = resolve
      self.waker = waker
    }

    func run() {
      var round = round
      let result: Result
      do {
        result = .connection(try connection(&round))
      } catch {
        result = .failure(error)
      }
      owner.finish(Attempt(round: round, result: result), waker)
      ConnectThread.running.subtract(1, ordering: .relaxed)
    }

    private func connection(
      _ round: inout AddressRound
    ) throws(ConnectionProblem) -> Connection {
      let target: AddressRound.Target
      do throws(UnresolvedName) {
        target = try round.next(resolve)
      } catch {
        throw ConnectionProblem(.unreachable, error.reason, .unresolved)
      }
      let configuration = configuration.attempt(at: target)
      for (name, path) in configuration.files where unsafe access(path, R_OK) != 0 {
        let reason = unsafe String(cString: strerror(errno))
        throw ConnectionProblem(.refused, "\(name) \(path): \(reason)", .certificate)
      }
      let connection = try Connection(configuration: configuration, target: target)
      do {
        try connection.handle.connect(configuration, address: target.address)
      } catch {
        let reason = connection.reason(error.reason)
        throw ConnectionProblem(.unreachable, reason, connection.trouble(of: reason))
      }
      return connection
    }
  }
}

extension MQTTConfiguration {
  /// The files that TLS reads, with their purpose.
  fileprivate var files: [(name: String, path: String)] {
    guard case .tls = endpoint else { return [] }
    let named = [("CA file", caFile), ("certificate", certificateFile), ("key", keyFile)]
    return named.compactMap { name, path in path.map { (name, $0) } }
  }
}

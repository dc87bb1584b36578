// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import Synchronization

/// Opens one connection on a thread of its own: resolving names and connecting may block.
///
/// A connection that was abandoned is freed on that thread.
final class ConnectThread: Sendable {
  /// The result of an attempt.
  enum Result: Sendable {
    case connection(Connection)
    case failure(ConnectionProblem)
  }

  private enum Slot: Sendable {
    case working
    case done(Result)
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
  init(configuration: MQTTConfiguration, waker: Waker) {
    let job = Job(owner: self, configuration: configuration, waker: waker)
    Self.running.add(1, ordering: .relaxed)
    do throws(OperationsError) {
      try WorkerThread { job.run() }.detach()
    } catch {
      Self.running.subtract(1, ordering: .relaxed)
      let problem = ConnectionProblem(.unreachable, "cannot start a thread for the connection")
      finish(.failure(problem), waker)
    }
  }

  /// Removes and returns the result; `nil` while there is none.
  func result() -> Result? {
    slot.withLock { slot in
      guard case .done(let result) = slot else { return nil }
      slot = .closed
      return result
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

  private func finish(_ result: Result, _ waker: Waker) {
    let isWanted = slot.withLock { slot in
      guard case .working = slot else { return false }
      slot = .done(result)
      return true
    }
    if isWanted { waker.wake() }
  }

  private final class Job: Sendable {
    let owner: ConnectThread
    let configuration: MQTTConfiguration
    let waker: Waker

    init(owner: ConnectThread, configuration: MQTTConfiguration, waker: Waker) {
      self.owner = owner
      self.configuration = configuration
      self.waker = waker
    }

    func run() {
      owner.finish(attempt(), waker)
      ConnectThread.running.subtract(1, ordering: .relaxed)
    }

    private func attempt() -> Result {
      for (name, path) in configuration.files where unsafe access(path, R_OK) != 0 {
        let reason = unsafe String(cString: strerror(errno))
        return .failure(ConnectionProblem(.refused, "\(name) \(path): \(reason)", .certificate))
      }
      do {
        let connection = try Connection(configuration: configuration)
        do {
          try connection.handle.connect(configuration)
        } catch {
          let reason = connection.reason(error.reason)
          let trouble = error.isUnresolvedName ? .unresolved : connection.trouble(of: reason)
          return .failure(ConnectionProblem(.unreachable, reason, trouble))
        }
        return .connection(connection)
      } catch {
        return .failure(ConnectionProblem(.refused, "\(error)"))
      }
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

// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations

/// A TCP proxy on loopback between clients and a broker, which delays, drops and resets on demand.
///
/// Works on a thread of its own while this object lives. All methods may be called from any thread;
/// a change applies to the bytes that arrive afterwards.
package final class FaultProxy: Sendable {
  /// Where bytes are sent.
  package enum Direction: Hashable, Sendable, CaseIterable {
    case toBroker
    case toClient
  }

  /// The faults of the connections.
  package struct Faults: Sendable {
    /// How long each byte is delayed.
    package var delay: Duration = .zero
    /// Directions in which everything is dropped, the end of a connection included; with both, a
    /// connection stays open and dead, and a new one is accepted and never answered.
    package var lost: Set<Direction> = []
    /// Types of MQTT packets from the broker to drop, such as ``publishAcknowledgement``.
    ///
    /// With the number to drop from now on, over all connections.
    package var lostPackets: [UInt8: Int] = [:]
    /// Topics to which the client publishes with QoS 1, and how many of the acknowledgements to
    /// drop.
    package var lostAcknowledgements: [String: Int] = [:]
    package init() {}
  }

  /// PUBACK.
  package static let publishAcknowledgement: UInt8 = 4

  /// Where clients connect to.
  package let port: Int
  private let worker: FaultProxyWorker
  private let thread: WorkerThread

  /// Accepts connections for the broker at `target`, which need not run.
  ///
  /// - Throws: ``TestBrokerError`` if there is no port or no thread.
  package init(to target: Int) throws {
    let listener = try LoopbackPort.listener()
    port = listener.port
    worker = try FaultProxyWorker(listener: listener.descriptor, target: target)
    thread = try WorkerThread { [worker] in worker.run() }
  }

  deinit {
    worker.change { $0.isStopping = true }
    thread.join()
  }

  /// Changes the faults from now on.
  package func set(_ change: (inout Faults) -> Void) { worker.change { change(&$0.faults) } }

  /// Ends every connection at once, both sides, with a reset; new ones are accepted.
  package func cut() { worker.change { $0.isCutting = true } }

  /// The number of accepted connections.
  package var connectionCount: Int { worker.read { $0.connections } }

  /// Waits until `count` packets have been dropped because of ``Faults/lostPackets`` or
  /// ``Faults/lostAcknowledgements``; `false` if that takes too long.
  package func waitFor(lostPackets count: Int, within limit: Duration = .patience) -> Bool {
    worker.wait(within: limit) { $0.lostPackets >= count }
  }

  /// Waits until `count` connections have been accepted in all.
  package func waitFor(connections count: Int, within limit: Duration = .patience) -> Bool {
    worker.wait(within: limit) { $0.connections >= count }
  }
}

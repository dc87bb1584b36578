// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations
import PrivateBroker

/// A TCP proxy on loopback between clients and a broker, which delays, loses and cuts on demand.
///
/// Works on a thread of its own until it goes. All methods may be called from any thread; what is
/// changed holds for everything that comes in afterwards.
package final class FaultProxy: Sendable {
  /// Where bytes go.
  package enum Way: Hashable, Sendable, CaseIterable {
    case toBroker
    case toClient
  }

  /// What is wrong with the line.
  package struct Faults: Sendable {
    /// How long everything is under way.
    package var delay: Duration = .zero
    /// Ways on which everything vanishes, the end of a connection included; with both of them a
    /// connection stays open and dead, and a new one is taken and never answered.
    package var lost: Set<Way> = []
    /// Types of MQTT packets from the broker that vanish, such as ``publishAcknowledgement``.
    ///
    /// With how many of them do, from now on; over all connections.
    package var lostPackets: [UInt8: Int] = [:]
    /// Topics to which the client publishes with QoS 1, and how many of the acknowledgements vanish.
    package var lostAcknowledgements: [String: Int] = [:]
    package init() {}
  }

  /// PUBACK.
  package static let publishAcknowledgement: UInt8 = 4

  /// Where clients connect to.
  package let port: Int
  private let line: Line
  private let thread: TestThread

  /// Takes connections for the broker at `target`, which need not run.
  ///
  /// - Throws: ``TestBrokerError`` if there is no port or no thread.
  package init(to target: Int) throws {
    let listener = try LoopbackPort.listener()
    port = listener.port
    line = try Line(listener: listener.descriptor, target: target)
    thread = try TestThread { [line] in line.run() }
  }

  deinit {
    line.order { $0.isStopping = true }
    thread.join()
  }

  /// Sets what is wrong from now on.
  package func set(_ change: (inout Faults) -> Void) { line.order { change(&$0.faults) } }

  /// Ends every connection at once, both sides, with a reset; new ones are taken.
  package func cut() { line.order { $0.isCutting = true } }

  /// How many connections have been taken.
  package var connectionCount: Int { line.read { $0.connections } }

  /// Waits until `count` packets have vanished because of ``Faults/lostPackets`` or
  /// ``Faults/lostAcknowledgements``; `false` if they do not in time.
  package func waitFor(lostPackets count: Int, within limit: Duration = .seconds(10)) -> Bool {
    line.wait(within: limit) { $0.lostPackets >= count }
  }

  /// Waits until `count` connections have been taken in all.
  package func waitFor(connections count: Int, within limit: Duration = .seconds(10)) -> Bool {
    line.wait(within: limit) { $0.connections >= count }
  }
}

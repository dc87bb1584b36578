// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
package import LastOut
import Operations

/// A peer on loopback that answers each MQTT packet by a script, for answers that no real broker
/// gives on demand.
///
/// Works on a thread of its own while this object lives. All methods may be called from any thread;
/// the script is called on the peer's thread.
package final class ScriptedBroker: Sendable {
  /// An action of the peer.
  package enum Action: Sendable {
    case send([UInt8])
    /// Sends the bytes again and again, so many times, a millisecond apart.
    case drip([UInt8], count: Int)
    /// Closes the connection.
    case close
    /// Resets the connection.
    case reset
  }

  /// The actions for each new connection, numbered from 1, and for each packet.
  package struct Script: Sendable {
    package var atConnection: @Sendable (_ number: Int) -> [Action]
    package var atPacket: @Sendable (ScriptedPacket) -> [Action]

    package init(_ atPacket: @escaping @Sendable (ScriptedPacket) -> [Action]) {
      self.init(atConnection: { _ in [] }, atPacket: atPacket)
    }

    package init(
      atConnection: @escaping @Sendable (_ number: Int) -> [Action],
      atPacket: @escaping @Sendable (ScriptedPacket) -> [Action]
    ) {
      self.atConnection = atConnection
      self.atPacket = atPacket
    }
  }

  /// Where clients connect to.
  package let port: Int
  private let worker: ScriptedBrokerWorker
  private let thread: WorkerThread

  /// Accepts connections from now on.
  ///
  /// - Throws: ``TestBrokerError`` if there is no port or no thread.
  package init(_ script: Script = Script { $0.politeAnswer }) throws {
    let listener = try LoopbackPort.listener()
    port = listener.port
    worker = try ScriptedBrokerWorker(listener: listener.descriptor, script: script)
    thread = try WorkerThread { [worker] in worker.run() }
  }

  deinit {
    worker.stop()
    thread.join()
  }

  /// When each connection was accepted, in order.
  package var connections: [Moment] { worker.read { $0.connections } }

  /// The received packets, in order.
  package var packets: [ScriptedPacket] { worker.read { $0.packets } }

  /// Waits until `count` connections have been accepted in all; `false` if that takes too long.
  package func waitFor(connections count: Int, within limit: Duration = .patience) -> Bool {
    worker.wait(within: limit) { $0.connections.count >= count }
  }

  /// Waits until the received packets satisfy `condition`.
  package func waitFor(
    within limit: Duration = .patience,
    _ condition: ([ScriptedPacket]) -> Bool
  ) -> Bool {
    worker.wait(within: limit) { condition($0.packets) }
  }
}

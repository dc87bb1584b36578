// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
package import LastOut
import Operations
import PrivateBroker

/// A peer on loopback that answers each MQTT packet as a script says: what no real broker does when
/// asked to.
///
/// Works on a thread of its own until it goes. All methods may be called from any thread; the script
/// is called on the peer's thread.
package final class ScriptedBroker: Sendable {
  /// What the peer does, in order.
  package enum Action: Sendable {
    case send([UInt8])
    /// Sends the bytes again and again, so many times, a millisecond apart.
    case drip([UInt8], count: Int)
    /// Ends the connection in order.
    case close
    /// Ends the connection with a reset.
    case reset
  }

  /// What it does at once with a new connection, by its number from 1 on, and with each packet.
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
  private let stage: ScriptedStage
  private let thread: TestThread

  /// Takes connections from now on.
  ///
  /// - Throws: ``TestBrokerError`` if there is no port or no thread.
  package init(_ script: Script = Script { $0.politeAnswer }) throws {
    let listener = try LoopbackPort.listener()
    port = listener.port
    stage = try ScriptedStage(listener: listener.descriptor, script: script)
    thread = try TestThread { [stage] in stage.run() }
  }

  deinit {
    stage.stop()
    thread.join()
  }

  /// When each connection was taken, in order.
  package var connections: [Moment] { stage.read { $0.connections } }

  /// The packets that came, in order.
  package var packets: [ScriptedPacket] { stage.read { $0.packets } }

  /// Waits until `count` connections have been taken in all; `false` if they are not in time.
  package func waitFor(connections count: Int, within limit: Duration = .seconds(10)) -> Bool {
    stage.wait(within: limit) { $0.connections.count >= count }
  }

  /// Waits until the packets that came satisfy `condition`.
  package func waitFor(
    within limit: Duration = .seconds(10),
    _ condition: ([ScriptedPacket]) -> Bool
  ) -> Bool {
    stage.wait(within: limit) { condition($0.packets) }
  }
}

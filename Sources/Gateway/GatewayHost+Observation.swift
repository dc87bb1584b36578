// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Control
import Devices
import GatewayCore
import Operations

/// What a program that runs a gateway can see of it.
extension GatewayHost {
  /// The path of the control socket once started.
  package var socketPath: String? { controlSocket?.path }

  /// Whether the gateway's own broker is connected.
  package var isConnected: Bool { mqtt.own.isConnected }

  /// Counts since the start.
  package var statistics: CommandStatistics { context.core.commands.statistics }

  /// What `get` shows of one key; `nil` for an unknown one.
  package func row(_ key: String) -> TargetRow? {
    (try? context.registry.index(of: key)).map {
      TargetRow($0, in: context.core, at: EventLoop.now())
    }
  }

  /// Called for every command handed to the broker.
  package var onCommand: ((_ topic: String, _ payload: [UInt8], _ keys: [String]) -> Void)? {
    get { mqtt.onCommand }
    set { mqtt.onCommand = newValue }
  }

  /// Calls `handler` for every event of every command.
  package func watchAll(_ handler: @escaping (EventObject) -> Void) {
    events.onEvent = handler
    events.updateObservers()
  }
}

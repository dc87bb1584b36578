// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Configuration
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
  package var statistics: CommandStatistics { context.core.commands.dispatcher.log.statistics }

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

  /// Sets how the configuration is read again; without it, a reload is refused.
  ///
  /// `read` is called on another thread.
  package func enableReload(
    reading read: @escaping @Sendable () -> Result<LoadedConfiguration, ConfigurationFailure>
  ) { reloads.read = read }

  /// Reads the configuration again and adopts it; `done` is called once, with the outcome.
  package func reload(_ done: @escaping (Result<ReloadReport, ReloadRefusal>) -> Void) {
    reloads.reload(done)
  }

  /// Calls `handler` for every event of every command.
  package func watchAll(_ handler: @escaping (EventObject) -> Void) {
    events.onEvent = handler
    events.updateObservers()
  }
}

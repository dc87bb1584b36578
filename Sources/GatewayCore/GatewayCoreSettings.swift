// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Devices
package import Routing

/// What a ``GatewayCore`` is configured with beside the devices.
package struct GatewayCoreSettings: Sendable {
  package var commands = CommandSettings()
  package var routes: [RouteConfiguration] = []
  /// The names of the brokers beside the gateway's own, in the order of their numbers from 1.
  package var brokers: [String] = []
  /// How long a routed message waits for an absent broker.
  package var routeTTL: Duration = .seconds(60)
  /// ``RouteMachine/payloadLimit``.
  package var routePayload = Int.max
  package var shutdownTimeout: Duration = .seconds(10)
  /// Devices that may appear; those of a reload count once it replaces the definitions.
  package var awaited = AwaitedDevices()
  /// How many keys one step of a reload looks at, at most.
  package var keysPerReloadStep = 1000

  package init() {}
}

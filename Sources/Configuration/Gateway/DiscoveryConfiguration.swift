// Settle
// SPDX-License-Identifier: Apache-2.0

package struct DiscoveryConfiguration: Hashable, Sendable {
  package enum Format: String, Hashable, Sendable { case device, component }
  package var prefix = "homeassistant"
  package var format = Format.device
  package init() {}
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// What devices need to know of the settings.
struct DeviceContext {
  var policies = PolicyTable()
  var ttl: Duration = .seconds(60)
  /// `nil`: the settings have no lanes at all, and any name is good.
  var lanes: [String]?
  var baseTopic = "settle"
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// Who made a device, and by which identifiers other programs announce it.
package struct DeviceDetails: Hashable, Sendable {
  package var manufacturer: String?
  package var model: String?
  /// Where people configure it, an `http` or `https` address.
  package var url: String?
  /// The identifiers under which others announce the same device to Home Assistant.
  package var identifiers: [String] = []

  package init() {}
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
import Glibc
import Values

/// What to do after `settle init`.
package struct NextSteps: Hashable, Sendable {
  /// The command that starts the gateway.
  package let start: String
  /// The command that adds devices once they announce themselves.
  package let addDevices: String
  /// A command that changes a value of a device; `nil` without a device that has a known one.
  package let change: String?
  /// Where a first device belongs; `nil` if there are devices.
  package let firstDevice: String?

  /// Whether only a group may use the control socket, because a service has it.
  package let needsGroup: Bool

  package init(_ folder: SetupFolder, registry: Registry) {
    needsGroup = folder.isSystem && Self.hasService
    start = Self.start(folder)
    addDevices = CommandAdvice.settle("import", settings: folder.settings)
    let entries = registry.properties
    change =
      entries.lazy.compactMap { Self.change($0, named: "brightness") }.first
      ?? entries.lazy.compactMap { Self.change($0, named: "power") }.first
      ?? entries.lazy.compactMap { Self.change($0, named: nil) }.first
    firstDevice = entries.isEmpty ? "\(folder.devices)/lamp.yaml" : nil
  }

  /// A device to write by hand, with the lamp that most people have.
  package static let example = """
    lamp:
      name: Lamp
      profile: zigbee2mqtt/light     # "settle profiles" lists all
      topic: zigbee2mqtt/lamp        # the device's own topic
    """

  private static func start(_ folder: SetupFolder) -> String {
    folder.isSystem && hasService
      ? "systemctl enable --now settled" : CommandAdvice.settle("run", settings: folder.settings)
  }

  /// Whether the unit is installed.
  private static var hasService: Bool {
    ["/lib", "/usr/lib", "/etc"].contains {
      unsafe access("\($0)/systemd/system/settled.service", F_OK) == 0
    }
  }

  /// A command that changes a property that a person can see.
  private static func change(_ entry: Registry.Entry, named name: String?) -> String? {
    guard name == nil || entry.property.id == name else { return nil }
    switch entry.property.kind {
    case .boolean: return "settle toggle \(entry.key) --wait"
    case .integer(let rule), .number(let rule):
      guard let range = rule.range, range.lowerBound > -1e9, range.upperBound < 1e9 else {
        return nil
      }
      let middle = (range.lowerBound + (range.upperBound - range.lowerBound) / 2).rounded(.down)
      return range.contains(middle) ? "settle set \(entry.key) \(Int(middle)) --wait" : nil
    case .choice, .text, .color, .action: return nil
    }
  }
}

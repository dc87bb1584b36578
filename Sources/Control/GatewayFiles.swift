// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
internal import Values

/// The files that a gateway reads.
package struct GatewayFiles: Hashable, Sendable {
  /// The settings file; `nil` for built-in settings.
  package var settings: String?
  /// The folder with the device files.
  package var devices: String

  package init(settings: String?, devices: String) {
    self.settings = settings
    self.devices = devices
  }

  /// The same files, with absolute paths.
  package var absolute: GatewayFiles {
    GatewayFiles(
      settings: settings.map(WorkingFolder.absolute),
      devices: WorkingFolder.absolute(devices)
    )
  }

  /// The same files, with paths from the working folder where they are below it.
  package var relative: GatewayFiles {
    GatewayFiles(
      settings: settings.map(WorkingFolder.relative),
      devices: WorkingFolder.relative(devices)
    )
  }
}

extension GatewayFiles: CustomStringConvertible {
  /// `home/settle.yaml and home/devices`.
  package var description: String {
    Excerpt.visible("\(settings ?? "built-in settings") and \(devices)")
  }
}

extension GatewayFiles {
  var json: JSONValue {
    .object(["settings": .text(settings), "devices": .string(devices)])
  }

  init?(_ json: JSONValue) {
    guard let devices = json["devices"]?.string else { return nil }
    self.init(settings: json["settings"]?.string, devices: devices)
  }
}

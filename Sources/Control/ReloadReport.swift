// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values
package import JSON

/// The body of `{"reloaded":{…}}`: the effects of reloading the configuration.
package struct ReloadReport: Hashable, Sendable {
  /// The number of devices and keys now.
  package var devices: Int
  package var keys: Int
  /// Keys that are new, gone or changed, in order of definition.
  package var added: [String]
  package var removed: [String]
  package var changed: [String]
  /// Changed sections that apply only after a restart.
  package var restart: [String]
  /// Warnings, as `file:line:column: message`.
  package var warnings: [String]
  /// The files that were read, with absolute paths.
  package var files: GatewayFiles?

  package init(
    devices: Int,
    keys: Int,
    added: [String] = [],
    removed: [String] = [],
    changed: [String] = [],
    restart: [String] = [],
    warnings: [String] = []
  ) {
    self.devices = devices
    self.keys = keys
    self.added = added
    self.removed = removed
    self.changed = changed
    self.restart = restart
    self.warnings = warnings
  }

  /// Reads the body; `nil` without its counts.
  package init?(_ json: JSONValue) {
    guard let devices = json["devices"]?.count, let keys = json["keys"]?.count else { return nil }
    self.init(
      devices: devices,
      keys: keys,
      added: Self.texts(json["added"]),
      removed: Self.texts(json["removed"]),
      changed: Self.texts(json["changed"]),
      restart: Self.texts(json["restart"]),
      warnings: Self.texts(json["warnings"])
    )
    files = json["files"].flatMap(GatewayFiles.init)
  }

  package var json: JSONValue {
    .object([
      "devices": .integer(Int64(devices)), "keys": .integer(Int64(keys)),
      "added": Self.list(added), "removed": Self.list(removed), "changed": Self.list(changed),
      "restart": Self.list(restart), "warnings": Self.list(warnings),
      "files": files?.json ?? .null,
    ])
  }

  private static func texts(_ json: JSONValue?) -> [String] {
    guard case .array(let items) = json else { return [] }
    return items.compactMap(\.string)
  }

  private static func list(_ texts: [String]) -> JSONValue {
    .array(texts.map { .string($0) })
  }
}

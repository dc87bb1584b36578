// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration
package import Devices
import Glibc
internal import JSON
import Values

/// The folder that `settle init` writes: settings, device files, and a password.
package struct SetupFolder: Hashable, Sendable {
  static let passwordName = "mqtt.password"
  /// Where the settings of the whole machine are.
  package static let system = "/etc/settle"
  /// The user and the group of the service.
  private static let service = "settle"

  package let path: String
  package var settings: String { FilePath.join(path, "settle.yaml") }
  package var devices: String { FilePath.join(path, "devices") }
  package var password: String { FilePath.join(path, Self.passwordName) }
  /// Whether the service of this machine reads it.
  package var isSystem: Bool { path == Self.system }

  /// `path` is what the user wants; without it, the machine's for root, and `config` for others.
  package init(_ path: String?, isRoot: Bool = geteuid() == 0) {
    var path = path ?? (isRoot ? Self.system : "config")
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    self.path = path
  }

  /// Those of its files that exist, and would have to be replaced.
  package var present: [String] {
    let imported = ImportSource.allCases.flatMap {
      [FilePath.join(devices, $0.fileName), FilePath.join(devices, $0.recordName)]
    }
    return ([settings, password] + imported).filter { path in
      var status = stat()
      return unsafe lstat(path, &status) == 0
    }
  }

  /// Why nothing can be written there, as far as that is known before; `nil` if nothing is.
  package var obstacle: String? {
    var status = stat()
    let isThere = unsafe stat(path, &status) == 0
    if isThere, status.st_mode & S_IFMT != S_IFDIR { return "\(path) is not a folder" }
    if unsafe lstat(devices, &status) == 0 {
      // A link may lead to a folder, or nowhere.
      let isFound = unsafe stat(devices, &status) == 0
      guard isFound, status.st_mode & S_IFMT == S_IFDIR else { return "\(devices) is not a folder" }
      // The files in it are read too.
      if let reason = Self.reason(notToUse: devices, R_OK | W_OK | X_OK) { return reason }
    }
    return Self.reason(notToUse: isThere ? path : FilePath.folder(of: path), W_OK | X_OK)
  }

  private static func reason(notToUse folder: String, _ mode: Int32) -> String? {
    guard unsafe access(folder, mode) != 0 else { return nil }
    return "\(folder): \(AtomicFile.words(errno))"
  }

  /// Writes everything; after a failure, nothing is left of it.
  ///
  /// For the machine's folder, the group of the service may read the files, and the password
  /// belongs to the service. Others may read none of them.
  ///
  /// - Throws: ``FileError`` when a file exists or a step fails.
  package func write(
    settings text: String,
    password secret: String?,
    _ plan: ImportPlan?
  ) throws(FileError) {
    var undo: [() -> Void] = []
    do throws(FileError) {
      for folder in [path, devices] {
        let isNew = unsafe access(folder, F_OK) != 0
        try AtomicFile.makeFolder(folder)
        guard isNew else { continue }
        undo.append { _ = unsafe rmdir(folder) }
        // Files that an import adds get the group of the folder.
        try give(folder, mode: folder == path ? 0o750 : 0o2750, user: 0)
      }
      if let secret {
        try AtomicFile.create(Array((secret + "\n").utf8), at: password, mode: 0o600)
        undo.append { [password] in _ = unsafe unlink(password) }
        try give(password, mode: 0o600, user: nil)
      }
      for file in plan?.files ?? [] {
        try file.create()
        undo.append { for path in [file.path, file.recordPath] { _ = unsafe unlink(path) } }
        try give(file.path, mode: 0o640, user: 0)
        try give(file.recordPath, mode: 0o640, user: 0)
      }
      try AtomicFile.create(Array(text.utf8), at: settings)
      undo.append { [settings] in _ = unsafe unlink(settings) }
      try give(settings, mode: 0o640, user: 0)
    } catch {
      for action in undo.reversed() { action() }
      throw error
    }
  }

  /// Sets mode, owner and the service's group, for the machine's folder if there is such a group.
  ///
  /// `user` is the owner; `nil` for the user of the service.
  private func give(_ path: String, mode: mode_t, user: uid_t?) throws(FileError) {
    guard isSystem, let group = unsafe getgrnam(Self.service) else { return }
    let owner = unsafe user ?? getpwnam(Self.service)?.pointee.pw_uid ?? 0
    let isSet = unsafe chown(path, owner, group.pointee.gr_gid) == 0 && chmod(path, mode) == 0
    guard isSet else {
      throw FileError(path, "owner and mode cannot be set: \(AtomicFile.words(errno))")
    }
  }
}

/// What to do after `settle init`.
package struct NextSteps: Hashable, Sendable {
  /// The command that starts the gateway.
  package let start: String
  /// A command that changes a value of a device; `nil` without a device that has a known one.
  package let change: String?
  /// Where a first device belongs; `nil` if there are devices.
  package let firstDevice: String?

  /// Whether only a group may use the control socket, because a service has it.
  package let needsGroup: Bool

  package init(_ folder: SetupFolder, registry: Registry) {
    needsGroup = folder.isSystem && Self.hasService
    start =
      needsGroup
      ? "systemctl enable --now settled" : CommandAdvice.settle("run", settings: folder.settings)
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

/// The settings that `settle init` writes.
package struct SetupSettings: Hashable, Sendable {
  package var url: String
  package var username: String?
  /// Whether there is a file with the password beside the settings.
  package var hasPassword = false
  package var usesMQTT5 = true
  /// PEM files for TLS, as absolute paths.
  package var ca: String?
  package var certificate: String?
  package var key: String?
  /// Whether Zigbee devices share a lane.
  package var hasZigbee = false
  /// The journal's file, from the folder of the settings; `nil` for none.
  package var journal: String?
  /// Where editors find the schema of settings; `nil` for nowhere.
  package var schema: String?

  package init(url: String) { self.url = url }

  /// The file's content.
  package var text: String {
    let head = schema.map { "# yaml-language-server: $schema=\($0)\n#\n" } ?? ""
    return head + """
      # Settings of the gateway, written by "settle init". "settle check --config FILE" checks them.

      mqtt:
      \(broker)
      devices: devices        # the folder beside this file; its *.yaml describe the devices
      import: auto            # devices that are announced later appear by themselves
      \(lanes)\(journalLine)
      # The panel for a browser on this machine, and the HTTP API:
      # http: {listen: [127.0.0.1:8484]}

      """
  }

  private var broker: String {
    // A word of YAML may contain colons that no blank follows.
    let isPlain = url.utf8.allSatisfy { byte in
      byte > 0x2C && byte < 0x7B && !"\\^`<>?;=".utf8.contains(byte)
    }
    var lines = isPlain ? "  url: \(url)\n" : YAMLText.entry("url", .string(url), indent: 2)
    if let username { lines += YAMLText.entry("username", .string(username), indent: 2) }
    if hasPassword {
      lines += YAMLText.entry("password_file", .string(SetupFolder.passwordName), indent: 2)
    }
    for (name, path) in [("ca", ca), ("cert", certificate), ("key", key)] {
      if let path { lines += YAMLText.entry(name, .string(path), indent: 2) }
    }
    if !usesMQTT5 { lines += "  protocol: 3.1.1\n" }
    return lines
  }

  private var lanes: String {
    guard hasZigbee else { return "" }
    return """

      # A Zigbee mesh carries few messages at a time, so its devices share a window, which adapts.
      lanes:
        zigbee: {window: auto}

      """
  }

  private var journalLine: String {
    guard let journal else { return "" }
    let line = YAMLText.entry("journal", .object([.init("path", .string(journal))]), indent: 0)
    return "\n# What was accepted survives a crash.\n" + line
  }
}

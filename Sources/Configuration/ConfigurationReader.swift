// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import Operations
import Routing
internal import Values

/// Reads all configuration files once and collects their mistakes.
final class ConfigurationReader {
  /// The maximum size of a settings or device file, in bytes.
  static let maximumFile = 8 << 20

  let environment: [String: String]
  let problems = Problems()
  /// Device files by path that replace or add to those on disk.
  ///
  /// Unless it is `nil`, the folder of device files may be missing.
  private let drafts: [String: [UInt8]]?
  private var files: [String] = []
  private var profileFiles: [String] = []
  private var hashes: [String: Int] = [:]
  /// The digest of the names and contents of device files and profiles.
  private var digest = FileDigest()
  /// Whether the folder of device files can be read, and nothing in it is reported already.
  private var isFolderRead = false

  init(environment: [String: String], drafts: [String: [UInt8]]? = nil) {
    self.environment = environment
    self.drafts = drafts
  }

  /// Reads everything: the file first, then the environment and the command line over it.
  func load(_ overrides: ConfigurationLoader.Overrides) -> LoadedConfiguration {
    let variables = EnvironmentOverrides(environment: environment, problems: problems)
    variables.warnAboutUnknownVariables()
    let path = settingsPath(overrides, variables)
    var settings = GatewayConfiguration()
    var positions = SettingsPositions()
    var root: YAMLNode?
    if let path {
      settings.devicesDirectory = FilePath.resolve("devices", in: FilePath.folder(of: path))
      root = isFolder(path) ? nil : read(path)
      if let root {
        let reader = SettingsReader(folder: FilePath.folder(of: path), problems: problems)
        let standard = settings.devicesDirectory
        (settings, positions) = reader.settings(root)
        if positions.devices == nil { settings.devicesDirectory = standard }
      }
    }
    settings.settingsFile = path
    variables.apply(to: &settings, &positions)
    if let socket = overrides.socket { settings.socket = socket }
    readSecrets(into: &settings, positions, file: path ?? "built-in settings")
    RouteChecks(settings: settings, problems: problems).check(positions.routes)
    var folder = (settings.devicesDirectory, positions.devices)
    if let given = variables.value("SETTLE_DEVICES") {
      folder = (given, .whole("$SETTLE_DEVICES"))
    }
    if let given = overrides.devices { folder = (given, .whole(given)) }
    settings.devicesDirectory = folder.0
    settings.stateDevices = stateDevices(overrides, variables, beside: folder.0)
    positions.isForeignState = overrides.stateDevices != nil
    positions.checksLanes = true
    var loaded = complete(settings, positions, folder: folder)
    loaded.settings = SettingsInForce.rows(of: settings, root, variables, overrides)
    return loaded
  }

  /// Reads the devices and makes the checks that need them.
  func complete(
    _ settings: GatewayConfiguration,
    _ positions: SettingsPositions,
    folder: (path: String, position: SourcePosition?)
  ) -> LoadedConfiguration {
    var context = DeviceContext()
    context.policies = settings.policies
    context.ttl = settings.ttl
    context.lanes = positions.checksLanes ? settings.lanes.keys.sorted() : nil
    context.baseTopic = settings.baseTopic
    context.deviceLimit = settings.limits.devices
    let profiles = ProfileStore(problems: problems)
    readProfiles(folder.path, into: profiles)
    var decoder = DeviceDecoder(context: context, profiles: profiles, problems: problems)
    readDevices(folder, into: &decoder)
    if let folder = settings.stateDevices { readStateDevices(folder, positions, into: &decoder) }
    decoder.resolveGroups()
    let scenes = decoder.scenes()
    let registry = Registry(decoder.devices, continuing: nil, scenes: scenes)
    if problems.count == 0 {
      if decoder.sources.isEmpty { warnAboutNothing(settings, registry, folder: folder.path) }
      InputReader.check(settings.inputs, positions.inputs, against: registry, problems: problems)
    }
    return LoadedConfiguration(
      gateway: settings,
      registry: registry,
      sources: decoder.sources,
      files: files,
      profileFiles: profileFiles,
      digest: digest.value,
      hashes: hashes,
      warnings: problems.sorted(problems.warnings)
    )
  }

  /// Warns where nothing can be controlled.
  private func warnAboutNothing(
    _ settings: GatewayConfiguration,
    _ registry: Registry,
    folder: String
  ) {
    guard registry.devices.isEmpty, settings.routes.isEmpty, isFolderRead,
      settings.importing == nil
    else { return }
    problems.warn(
      .whole(folder),
      "no devices: no file *.yaml in this folder describes one;"
        + " '\(CommandAdvice.settle("import", settings: settings.settingsFile))' writes them"
    )
  }

  private func settingsPath(
    _ overrides: ConfigurationLoader.Overrides,
    _ variables: EnvironmentOverrides
  ) -> String? {
    if let path = overrides.config ?? variables.value("SETTLE_CONFIG") { return path }
    do throws(SafeFile.Problem) {
      _ = try SafeFile.read(ConfigurationLoader.standardPath, limit: Self.maximumFile)
    } catch {
      if error.isMissing { return nil }
    }
    return ConfigurationLoader.standardPath
  }

  /// The second folder of device files; `nil` if it is the first, or there is none.
  private func stateDevices(
    _ overrides: ConfigurationLoader.Overrides,
    _ variables: EnvironmentOverrides,
    beside folder: String
  ) -> String? {
    // A service may have several state folders, separated by colons.
    let state = variables.value("STATE_DIRECTORY")?.prefix { $0 != ":" }
    let path = overrides.stateDevices ?? state.map { FilePath.join(String($0), "devices") }
    return path.flatMap { SafeFile.areSame($0, folder) ? nil : $0 }
  }

  /// Whether the path of the settings is that of a folder, which is a mistake.
  private func isFolder(_ path: String) -> Bool {
    guard SafeFile.isFolder(path) else { return false }
    let inside = FilePath.join(path, "settle.yaml")
    let isThere = (try? SafeFile.read(inside, limit: Self.maximumFile)) != nil
    problems.add(
      .whole(path),
      "is a folder, not the settings file",
      suggestion: isThere ? inside : nil
    )
    return true
  }

  private func readSecrets(
    into settings: inout GatewayConfiguration,
    _ positions: SettingsPositions,
    file: String
  ) {
    let secrets = Secrets(environment: environment, problems: problems)
    settings.mqtt.password = secrets.mainPassword(positions.main)
    check(settings.mqtt, positions.main, file: file)
    if let http = settings.http {
      let token = secrets.token(in: http.tokenFile, at: positions.tokenFile)
      settings.http?.token = token
      // An unreadable token file is already reported.
      if token != nil || http.tokenFile == nil { checkListen(http, token, positions) }
    }
    if settings.cluster != nil { settings.mqtt.allowsOlderVersion = false }
    if settings.cluster != nil, let cluster = positions.cluster {
      let password = secrets.secret(at: cluster.passwordFile)
      settings.cluster?.password = password
      PlaintextCheck.check(settings.cluster, cluster, problems: problems)
    }
    for name in settings.brokers.keys.sorted() {
      let brokerPositions = positions.brokers[name] ?? BrokerPositions()
      settings.brokers[name]?.password = secrets.secret(at: brokerPositions.passwordFile)
      if let broker = settings.brokers[name] { check(broker, brokerPositions, file: file) }
    }
  }

  private func checkListen(
    _ http: HTTPConfiguration,
    _ token: String?,
    _ positions: SettingsPositions
  ) {
    for (address, position) in zip(http.addresses, positions.listen) {
      let reason = ListenAddress.reason(
        toProtect: address,
        token: token,
        isTrusting: !http.trusted.isEmpty
      )
      if let reason {
        problems.add(position, "listen: \(reason)")
      }
    }
  }

  private func check(_ broker: BrokerConfiguration, _ positions: BrokerPositions, file: String) {
    PlaintextCheck.check(broker, positions, file: file, problems: problems)
    if !broker.usesMQTT5, broker.password != nil, broker.username == nil {
      problems.add(
        positions.url ?? .whole(file),
        "'username' is missing: MQTT 3.1.1 allows no password without a user name"
      )
    }
  }

  private func readProfiles(_ folder: String, into store: ProfileStore) {
    let path = FilePath.join(folder, "profiles")
    do throws(SafeFile.Problem) {
      for name in try SafeFile.names(in: path, suffix: ".yaml") {
        profileFiles.append(FilePath.join(path, name))
        if let root = read(FilePath.join(path, name), isDigested: true) { store.add(root) }
      }
    } catch {
      // A folder of device files that cannot be read is reported once, with those files.
      guard !error.isMissing, SafeFile.isFolder(folder) else { return }
      problems.add(.whole(path), "the folder \(error.message)")
    }
  }

  private func readDevices(
    _ folder: (path: String, position: SourcePosition?),
    into decoder: inout DeviceDecoder
  ) {
    do throws(SafeFile.Problem) {
      let paths = try devicePaths(in: folder.path)
      for path in paths {
        if let root = read(path, isDigested: true) { decoder.read(root) }
      }
      guard drafts == nil else { return }
      let unread = try SafeFile.names(in: folder.path, suffix: ".yml")
      isFolderRead = unread.isEmpty
      for name in unread {
        problems.warn(
          .whole(FilePath.join(folder.path, name)),
          "the file is not read: names of device files end in .yaml"
        )
      }
    } catch {
      let message = "the folder of device files '\(folder.path)' \(error.message)"
      if let position = folder.position {
        problems.add(position, message)
      } else {
        problems.warn(.whole(folder.path), message)
      }
    }
  }

  /// Reads the device files of the second folder, if it exists.
  private func readStateDevices(
    _ folder: String,
    _ positions: SettingsPositions,
    into decoder: inout DeviceDecoder
  ) {
    do throws(SafeFile.Problem) {
      for path in try devicePaths(in: folder) {
        if let root = read(path, isDigested: true) { decoder.read(root, isOfState: true) }
      }
    } catch {
      let message = "the folder \(error.message)"
      if positions.isForeignState {
        problems.warn(.whole(folder), message)
      } else if !error.isMissing {
        problems.add(.whole(folder), message)
      }
    }
  }

  /// The paths of device files in a folder, followed by drafts of new files.
  private func devicePaths(in folder: String) throws(SafeFile.Problem) -> [String] {
    var paths: [String] = []
    do throws(SafeFile.Problem) {
      paths = try SafeFile.names(in: folder, suffix: ".yaml").map { FilePath.join(folder, $0) }
    } catch {
      if drafts == nil || !error.isMissing { throw error }
    }
    let new = (drafts ?? [:]).keys.filter { path in
      FilePath.join(folder, String(path.split(separator: "/").last ?? "")) == path
        && !paths.contains(path)
    }
    return paths + new.sorted()
  }

  /// Reads a file's root node; `nil` when the file is empty or unreadable.
  private func read(_ path: String, isDigested: Bool = false) -> YAMLNode? {
    problems.recordFile(path)
    files.append(path)
    do throws(SafeFile.Problem) {
      let draft = drafts?[path]
      let bytes =
        if let draft { draft } else { try SafeFile.read(path, limit: Self.maximumFile).bytes }
      hashes[path] = bytes.hashValue
      if isDigested { digest.add(path, bytes) }
      return YAMLReader.read(bytes, file: path, problems: problems)
    } catch {
      problems.add(.whole(path), "the file \(error.message)")
      return nil
    }
  }
}

/// Tells whether two gateways have read the same files: FNV-1a over their names and contents, in
/// the order of reading.
private struct FileDigest {
  private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

  mutating func add(_ path: String, _ bytes: [UInt8]) {
    add(path.split(separator: "/").last.map { Array($0.utf8) } ?? [])
    add(bytes)
  }

  private mutating func add(_ bytes: [UInt8]) {
    for byte in bytes { value = (value ^ UInt64(byte)) &* 0x100_0000_01b3 }
    value = (value ^ 0xFF) &* 0x100_0000_01b3  // No text has this byte: where one ends counts.
  }
}

/// Checks that no password travels unencrypted to a public host.
enum PlaintextCheck {
  /// Reports a password without TLS: an error for a public host, a warning for a private one.
  static func check(
    _ broker: BrokerConfiguration,
    _ positions: BrokerPositions,
    file: String,
    problems: Problems
  ) {
    guard broker.password != nil else { return }
    for case .tcp(let host, _) in broker.endpoints {
      check(
        host,
        isAllowed: broker.allowPlaintext,
        encrypted: "mqtts://",
        at: positions.url ?? .whole(file),
        problems
      )
    }
  }

  /// The same for the servers of a cluster's engine.
  static func check(
    _ cluster: ClusterConfiguration?,
    _ positions: ClusterPositions,
    problems: Problems
  ) {
    guard let cluster, cluster.password != nil else { return }
    for server in cluster.servers where server.hasPrefix("nats://") {
      let authority = server.dropFirst("nats://".count)
      guard let (host, _) = try? BrokerURL.hostAndPort(authority, standard: nil) else { continue }
      check(
        host,
        isAllowed: false,
        encrypted: "tls://",
        at: positions.servers ?? positions.section,
        problems
      )
    }
  }

  private static func check(
    _ host: String,
    isAllowed: Bool,
    encrypted: String,
    at position: SourcePosition,
    _ problems: Problems
  ) {
    switch HostScope(host) {
    case .loopback: return
    case .privateNetwork:
      problems.warn(
        position,
        "the password travels unencrypted to '\(host)'; \(encrypted) would protect it"
      )
    case .publicNetwork where isAllowed:
      problems.warn(
        position,
        "the password travels unencrypted to '\(host)', as 'allow_plaintext' permits"
      )
    case .publicNetwork:
      problems.add(
        position,
        "the password would travel unencrypted to '\(host)': use \(encrypted)"
          + (encrypted == "mqtts://" ? ", or set 'allow_plaintext: true'" : "")
      )
    }
  }
}

/// Finds routes whose output reaches a route's input or the gateway's own topics.
struct RouteChecks {
  let settings: GatewayConfiguration
  let problems: Problems

  /// Reports every such route.
  func check(_ positions: [RoutePositions]) {
    let inputs = FilterIndex(settings.routes.map(\.from.topic))
    for (number, route) in settings.routes.enumerated() {
      for other in inputs.overlapping(route.to.topic) {
        let candidate = settings.routes[other]
        guard isSameBroker(route.to.broker, candidate.from.broker) else { continue }
        let name = number == other ? "its own input" : "the input"
        problems.add(
          positions[number].to,
          "to: '\(route.to.topic)' feeds \(name) '\(candidate.from.topic)' at "
            + "\(positions[other].from.text), which would loop"
        )
      }
      checkOwnTopics(route, positions[number])
    }
  }

  private func checkOwnTopics(_ route: RouteConfiguration, _ positions: RoutePositions) {
    let filters = SettingsRules.commandFilters(baseTopic: settings.baseTopic)
    for (key, end, position) in [
      ("from", route.from, positions.from), ("to", route.to, positions.to),
    ]
    where isSameBroker(end.broker, nil) {
      guard let own = filters.first(where: { Topic.overlaps($0, end.topic) }) else { continue }
      problems.add(
        position,
        "\(key): '\(end.topic)' overlaps the gateway's own commands on '\(own)'"
      )
    }
  }

  /// Compares endpoints, because two names can refer to one broker.
  private func isSameBroker(_ left: String?, _ right: String?) -> Bool {
    left == right || endpoints(left).contains { endpoints(right).contains($0) }
  }

  private func endpoints(_ name: String?) -> [BrokerEndpoint] {
    guard let name else { return settings.mqtt.endpoints }
    return settings.brokers[name]?.endpoints ?? []
  }
}
